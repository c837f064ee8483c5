// SPDX-License-Identifier: Apache-2.0
// HTTP requests by libcurl, with connections that are kept for the next request.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "s3/curl_library.h"

namespace nereid::s3 {

struct HttpReply {
  int status = 0;                              // 0: there was none, and `failure` says why
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of an error, cut off where it gets too long
  // Why the reply is not complete; empty when it is.
  std::string failure;
  bool is_final =
      false;  // another try would fail likewise: `on_body` refused it, no trust in the server
};

struct HttpRequest {
  std::string url;
  std::map<std::string, std::string> headers;
  // Bytes of the body behind the head of the reply, if its status is 2xx; false: it is not wanted,
  // which fails the request. Other bodies go into HttpReply::body.
  std::function<bool(const HttpReply& head, std::string_view bytes)> on_body;
};

// Thread-safe.
class Transport {
 public:
  // `ca_file`: certificates to trust instead of the system's; empty: those. Opens libcurl; when
  // that is not possible every request fails and says so.
  explicit Transport(std::string ca_file);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  HttpReply Get(const HttpRequest& request);

 private:
  struct CloseHandle {
    const CurlLibrary* curl = nullptr;
    void operator()(void* handle) const;
  };
  using Handle = std::unique_ptr<void, CloseHandle>;

  Handle TakeHandle();
  void KeepHandle(Handle handle);

  const std::string ca_file_;
  std::unique_ptr<const CurlLibrary> curl_;  // null: `missing_` says why
  std::string missing_;
  base::Mutex mutex_;
  std::vector<Handle> idle_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::s3
