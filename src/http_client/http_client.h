// SPDX-License-Identifier: Apache-2.0
// HTTP requests by libcurl, http:// and https://, with persistent connections. The proxy variables
// of the environment apply (http_proxy, https_proxy, no_proxy).
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

// The outcome of a request: the server's reply, complete or in part, or the reason why there is
// none.
struct HttpReply {
  int status = 0;                              // 0: no reply, for the reason in `failure`
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of an error reply; truncated if too long
  // Why the reply is incomplete; empty if it is complete.
  std::string failure;
  // A retry would fail as well: `on_body` refused the reply, the request was cancelled, or the
  // server is not trusted.
  bool is_final = false;

  bool is_success() const { return failure.empty() && status / 100 == 2; }
};

enum class Method { kGet, kPost, kPut };

// A request to be sent once. Sending does not change it.
struct HttpRequest {
  Method method = Method::kGet;
  std::string url;
  std::map<std::string, std::string> headers;
  std::string body;  // of a POST or PUT
  // Whether proxies are not for this request, because the server is this machine's own.
  bool avoids_proxy = false;
  // Receives the bytes of the body if the status is 2xx. Returning false fails the request. May be
  // null to ignore them. Bodies with other statuses go into HttpReply::body.
  std::function<bool(const HttpReply& head, std::string_view bytes)> on_body;
  // The limit for the whole request; 0: none, as long as bytes keep arriving.
  std::chrono::milliseconds timeout{0};
  // Cancels the request, within about a second.
  std::stop_token stop;
};

// The settings of all requests of a client.
struct HttpClientOptions {
  // Certificates to trust instead of the system's, if not empty.
  std::string ca_file = {};
  // The certificate and private key (PEM) to show to servers that ask for them, if not empty.
  std::string cert_file = {};
  std::string key_file = {};
  // The Unix socket to connect to instead of the host of the URL, if not empty.
  std::string unix_socket = {};
  // How long to wait for a connection.
  std::chrono::milliseconds connect_timeout{5000};
  // A reply is given up after this time without a byte. Whole seconds; 0: never.
  std::chrono::seconds stall_timeout{20};
};

// Sends each request once; retry.h helps to repeat it. Redirections are not followed but returned,
// because a request signed for one address must not be sent to another. Thread-safe.
class HttpClient {
 public:
  // The first request opens libcurl; if that fails, every request fails with the reason.
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

  // Returns the library, or null with the reason in `why`.
  const CurlLibrary* Open(std::string& why);
  Handle TakeHandle(const CurlLibrary& curl);
  void KeepHandle(const CurlLibrary& curl, Handle handle);

  const HttpClientOptions options_;
  base::Mutex mutex_;
  std::shared_ptr<const CurlLibrary> curl_ NEREID_GUARDED_BY(mutex_);  // null until opened
  std::vector<Handle> idle_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::http_client
