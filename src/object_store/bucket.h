// SPDX-License-Identifier: Apache-2.0
// The two questions that a model repository asks an object store: what is there, and what is in it.
// Failures that may pass are tried again after growing pauses.
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

namespace nereid::object_store {

// Thread-safe.
class Bucket {
 public:
  // `client` outlives it.
  Bucket(http_client::HttpClient& client, std::unique_ptr<Protocol> protocol,
         http_client::RetryPolicy policy = {});

  // Every object whose key begins with `prefix`, sorted.
  base::Result<std::vector<Object>> List(const std::string& prefix);
  // Hands the bytes of a range of the object to `write`, in their order, each once; an error of
  // `write` ends it, and so does `stop`. An error when the object is not the one with this ETag and
  // size any more. The result is whether Object::md5, if there is one, is that of the bytes.
  base::Result<bool> Read(const Object& object, Range range,
                          const std::function<base::Status(std::string_view)>& write,
                          const std::stop_token& stop = {});

 private:
  Failure Explain(const http_client::HttpReply& reply) const;
  base::Status Changed(const Object& object) const;
  // Whether `size` bytes, the first behind `head` (none: later ones), can be those of `range`.
  base::Status CheckPart(const Object& object, Range range, const http_client::HttpReply& head,
                         size_t size) const;
  // Sends requests until one succeeds or there is no hope; the last reply, and why it is no
  // success. Hope lasts as long as `progress` grows between attempts.
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
