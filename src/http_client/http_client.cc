// SPDX-License-Identifier: Apache-2.0
#include "http_client/http_client.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/trim.h"
#include "http_client/curl_library.h"

namespace nereid::http_client {
namespace {

constexpr size_t kMaxErrorBytes = 64 << 10;
constexpr size_t kMaxHeaders = 256;
constexpr size_t kMaxIdle = 16;

// Deleter for libcurl's lists.
struct FreeList {
  const CurlLibrary& curl;
  void operator()(curl_slist* list) const { curl.slist_free_all(list); }
};

// Blocks SIGPIPE for a scope. Writing to a connection that the peer has closed raises it, which
// cannot be prevented with TLS, and it would end the process that this library is part of.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec now{};
    // A SIGPIPE that was raised in this scope is discarded; one that was pending before remains
    // pending.
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

// One request in progress.
struct Exchange {
  const HttpRequest& request;
  HttpReply reply;
  bool is_head_whole = false;
};

constexpr std::string_view kBlanks = " \t\r\n";

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  HttpReply& reply = exchange.reply;
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {  // a new reply begins: the previous one was "100 Continue"
    const size_t space = line.find(' ');
    reply.status = 0;
    for (size_t i = space + 1; space != line.npos && i < line.size() && i < space + 4; ++i) {
      if (line[i] >= '0' && line[i] <= '9') reply.status = reply.status * 10 + (line[i] - '0');
    }
    reply.headers.clear();
    exchange.is_head_whole = false;
    return size;
  }
  if (line == "\r\n" || line == "\n") exchange.is_head_whole = true;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || reply.headers.size() >= kMaxHeaders) return size;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  reply.headers[std::move(name)] = base::Trim(line.substr(colon + 1), kBlanks);
  return size;
}

size_t OnBody(char* data, size_t, size_t size, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  const std::string_view bytes(data, size);
  if (exchange.reply.status / 100 == 2) {
    if (!exchange.request.on_body || exchange.request.on_body(exchange.reply, bytes)) return size;
    exchange.reply.is_final = true;
    return 0;
  }
  std::string& body = exchange.reply.body;
  body += bytes.substr(0, kMaxErrorBytes - std::min(body.size(), kMaxErrorBytes));
  return size;
}

// libcurl calls this about once a second and whenever bytes move. A result other than 0 ends the
// request.
int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->request.stop.stop_requested() ? 1 : 0;
}

// A libcurl handle that is being set up for a request.
class Setup {
 public:
  Setup(const CurlLibrary& curl, CURL* handle) : curl_(curl), handle_(handle) {}

  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_.easy_setopt(handle_, option, value);
  }

 private:
  const CurlLibrary& curl_;
  CURL* const handle_;
};

void SetRequest(Setup& setup, Exchange& exchange, curl_slist* headers) {
  const HttpRequest& request = exchange.request;
  setup.Set(CURLOPT_URL, request.url.c_str());
  setup.Set(CURLOPT_HTTPHEADER, headers);
  if (request.method != Method::kGet) {
    setup.Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    setup.Set(CURLOPT_POSTFIELDS, request.body.data());
  }
  if (request.method == Method::kPut) setup.Set(CURLOPT_CUSTOMREQUEST, "PUT");
  if (request.avoids_proxy) setup.Set(CURLOPT_NOPROXY, "*");
  setup.Set(CURLOPT_HEADERFUNCTION, &OnHeader);
  setup.Set(CURLOPT_HEADERDATA, &exchange);
  setup.Set(CURLOPT_WRITEFUNCTION, &OnBody);
  setup.Set(CURLOPT_WRITEDATA, &exchange);
  if (request.stop.stop_possible()) {
    setup.Set(CURLOPT_NOPROGRESS, 0L);
    setup.Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    setup.Set(CURLOPT_XFERINFODATA, &exchange);
  }
  setup.Set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
}

void SetClient(Setup& setup, const HttpClientOptions& options) {
  // The path is not normalised: the signature covers the path as it was written.
  setup.Set(CURLOPT_PATH_AS_IS, 1L);
  setup.Set(CURLOPT_NOSIGNAL, 1L);
  setup.Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  setup.Set(CURLOPT_PROTOCOLS_STR, "http,https");
  setup.Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  // A server that sends nothing is given up. The total duration is not limited, because files may
  // be large.
  setup.Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  setup.Set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_timeout.count()));
  setup.Set(CURLOPT_TCP_KEEPALIVE, 1L);
  setup.Set(CURLOPT_BUFFERSIZE, 256L << 10);
  if (!options.ca_file.empty()) setup.Set(CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.cert_file.empty()) setup.Set(CURLOPT_SSLCERT, options.cert_file.c_str());
  if (!options.key_file.empty()) setup.Set(CURLOPT_SSLKEY, options.key_file.c_str());
  if (!options.unix_socket.empty()) {
    setup.Set(CURLOPT_UNIX_SOCKET_PATH, options.unix_socket.c_str());
  }
}

using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void Append(const CurlLibrary& curl, HeaderList& list, const std::string& line) {
  curl_slist* const longer = curl.slist_append(list.get(), line.c_str());
  if (longer == nullptr) return;
  static_cast<void>(list.release());
  list.reset(longer);
}

HeaderList MakeHeaders(const CurlLibrary& curl, const HttpRequest& request) {
  HeaderList list(nullptr, {.curl = curl});
  for (const auto& [name, value] : request.headers) {
    Append(curl, list, fmt::format("{}: {}", name, value));
  }
  // Otherwise libcurl waits a second for "100 Continue", which some servers do not send.
  if (request.method != Method::kGet) Append(curl, list, "Expect:");
  return list;
}

// Whether the same request would fail again.
bool IsFinal(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
         code == CURLE_ABORTED_BY_CALLBACK;
}

}  // namespace

HttpClient::HttpClient(HttpClientOptions options) : options_(std::move(options)) {}

HttpClient::~HttpClient() {
  base::MutexLock lock(mutex_);
  idle_.clear();  // before the library is closed
}

void HttpClient::CloseHandle::operator()(void* handle) const {
  const WithoutSigpipe guard;
  curl->easy_cleanup(handle);
}

const CurlLibrary* HttpClient::Open(std::string& why) {
  base::MutexLock lock(mutex_);
  if (curl_ == nullptr) {
    auto opened = CurlLibrary::Open();
    if (opened.ok()) {
      curl_ = std::move(*opened);
    } else {
      why = opened.status().message();
    }
  }
  return curl_.get();
}

HttpClient::Handle HttpClient::TakeHandle(const CurlLibrary& curl) {
  {
    base::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      Handle handle = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  return Handle(curl.easy_init(), {.curl = &curl});
}

void HttpClient::KeepHandle(const CurlLibrary& curl, Handle handle) {
  curl.easy_reset(handle.get());
  base::MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(handle));
}

HttpReply HttpClient::Send(const HttpRequest& request) {
  Exchange exchange{request, {}, false};
  HttpReply& reply = exchange.reply;
  const CurlLibrary* const curl = Open(reply.failure);
  if (curl == nullptr) {
    reply.is_final = true;
    return std::move(reply);
  }
  Handle handle = TakeHandle(*curl);
  if (handle == nullptr) {
    reply.failure = "out of memory";
    return std::move(reply);
  }
  const HeaderList headers = MakeHeaders(*curl, request);
  Setup setup(*curl, handle.get());
  SetClient(setup, options_);
  SetRequest(setup, exchange, headers.get());
  const WithoutSigpipe guard;
  const CURLcode code = curl->easy_perform(handle.get());
  if (code != CURLE_OK) {
    // Triton's users know this format of Amazon's library.
    reply.failure =
        fmt::format("curlCode: {}, {}", static_cast<int>(code), curl->easy_strerror(code));
    reply.is_final |= IsFinal(code);
  } else if (!exchange.is_head_whole) {
    // libcurl takes the end of the connection as the end of the head, too.
    reply.failure = "the head of the reply breaks off";
  }
  KeepHandle(*curl, std::move(handle));
  return std::move(reply);
}

}  // namespace nereid::http_client
