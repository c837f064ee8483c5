// SPDX-License-Identifier: Apache-2.0
// HTTP requests by libcurl, http:// and https://, with connections that are kept for the next
// request. The proxies of the environment (http_proxy, https_proxy, no_proxy) hold.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace nereid::http_client {

struct CurlLibrary;

// What came of a request: the server's reply, whole or in part, or the reason why there is none.
struct HttpReply {
  int status = 0;                              // 0: there was none, and `failure` says why
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of an error, cut off where it gets too long
  // Why the reply is not complete; empty when it is.
  std::string failure;
  // Another try would fail likewise: `on_body` refused it, the request was cancelled, the server is
  // not trusted.
  bool is_final = false;

  bool is_success() const { return failure.empty() && status / 100 == 2; }
};

enum class Method { kGet, kPost };

// A request to be sent once. Sending does not change it.
struct HttpRequest {
  Method method = Method::kGet;
  std::string url;
  std::map<std::string, std::string> headers;
  std::string body;  // of a POST
  // Bytes of the body behind the head of the reply, if its status is 2xx; false: it is not wanted,
  // which fails the request. Null: nobody wants to see them. Other bodies go into HttpReply::body.
  std::function<bool(const HttpReply& head, std::string_view bytes)> on_body;
  // For the whole request; 0: as long as it takes, if only bytes come.
  std::chrono::milliseconds timeout{0};
  // Cancels the request, within about a second.
  std::stop_token stop;
};

// What holds for every request of a client.
struct HttpClientOptions {
  // Certificates to trust instead of the system's; empty: those.
  std::string ca_file = {};
  // A server that accepts no connection for so long is unreachable.
  std::chrono::milliseconds connect_timeout{5000};
  // A reply of which nothing comes for so long is given up, in whole seconds.
  std::chrono::seconds stall_timeout{20};
};

// Each request is sent once; retry.h has what repeats it. A redirection is a reply like others:
// what was signed for one address is not to be sent to another. Thread-safe.
class HttpClient {
 public:
  // libcurl is opened by the first request; when that is not possible every request fails and says
  // so.
  explicit HttpClient(HttpClientOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Returns when the reply is complete or has failed.
  HttpReply Send(const HttpRequest& request);

 private:
  // Closes a handle of libcurl, and with it the connections that the handle keeps.
  struct CloseHandle {
    const CurlLibrary* curl = nullptr;
    void operator()(void* handle) const;
  };
  using Handle = std::unique_ptr<void, CloseHandle>;

  // The library; null with a reason in `why`.
  const CurlLibrary* Open(std::string& why);
  Handle TakeHandle(const CurlLibrary& curl);
  void KeepHandle(const CurlLibrary& curl, Handle handle);

  const HttpClientOptions options_;
  base::Mutex mutex_;
  std::shared_ptr<const CurlLibrary> curl_ NEREID_GUARDED_BY(mutex_);  // null until it is open
  std::vector<Handle> idle_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::http_client
