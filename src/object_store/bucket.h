// SPDX-License-Identifier: Apache-2.0
// The requests that a model repository sends to an object store: list the objects, and read one.
// Temporary failures are retried after growing pauses. Small objects that change often, of which
// there are few, are also read as they are now, and written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http_client/http_client.h"
#include "http_client/retry.h"
#include "object_store/object.h"
#include "object_store/provider.h"
#include "repository/store.h"

namespace nereid::object_store {

// One bucket. Thread-safe.
class Bucket {
 public:
  // `client` outlives the bucket.
  Bucket(http_client::HttpClient& client, std::unique_ptr<Protocol> protocol,
         http_client::RetryPolicy policy = {});

  // Returns every object whose key begins with `prefix`, sorted.
  base::Result<std::vector<Object>> List(const std::string& prefix);
  // Passes the bytes of a range of the object to `write`, in order, each once. An error of `write`
  // or a request of `stop` ends the read. Fails if the object no longer has this ETag and size. The
  // result is whether Object::md5, if set, is the MD5 of the bytes.
  base::Result<bool> Read(const Object& object, Range range,
                          const std::function<base::Status(std::string_view)>& write,
                          const std::stop_token& stop = {});

  // Returns a whole object as it is now, with its ETag as the mark; nothing if there is none. Sent
  // once, because whoever looks often looks again soon.
  base::Result<std::optional<repository::SmallFile>> ReadNow(const std::string& key,
                                                             size_t max_bytes,
                                                             const std::stop_token& stop);
  // Writes a whole object if it still has that ETag (empty: if there is none); returns false if
  // not.
  base::Result<bool> Write(const std::string& key, const std::string& text,
                           const std::string& etag);

 private:
  Failure Explain(const http_client::HttpReply& reply) const;
  base::Status Changed(const Object& object) const;
  // Checks that `size` bytes can belong to `range`. `head` is that of the reply for its first
  // bytes, and empty for later ones.
  base::Status CheckPart(const Object& object, Range range, const http_client::HttpReply& head,
                         size_t size) const;
  // Sends requests until one succeeds or no attempts are left. Returns the last reply and, if it is
  // not a success, the failure. The attempts begin anew when `progress` has grown.
  struct Outcome {
    http_client::HttpReply reply;
    std::optional<Failure> failure;
  };
  using MakeRequest = std::function<base::Result<http_client::HttpRequest>()>;
  Outcome Ask(const MakeRequest& make, const uint64_t& progress, const std::stop_token& stop);

  http_client::HttpClient& client_;
  const std::unique_ptr<Protocol> protocol_;
  const http_client::RetryPolicy policy_;
};

}  // namespace nereid::object_store
