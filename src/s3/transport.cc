// SPDX-License-Identifier: Apache-2.0
#include "s3/transport.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace nereid::s3 {
namespace {

constexpr size_t kMaxErrorBytes = 64 << 10;
constexpr size_t kMaxHeaders = 256;
constexpr size_t kMaxIdle = 16;

struct FreeList {
  const CurlLibrary& curl;
  void operator()(curl_slist* list) const { curl.slist_free_all(list); }
};

// A connection that its other end has closed answers what is written to it with SIGPIPE, and with
// TLS nothing keeps it from being sent. It would end the process that this library is part of.
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
    // One of ours is taken away; one that came from elsewhere stays for whom it is meant.
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

// One request under way.
struct Exchange {
  const HttpRequest& request;
  HttpReply reply;
};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  HttpReply& reply = static_cast<Exchange*>(user)->reply;
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {  // another reply begins: the one before was "100 Continue"
    const size_t space = line.find(' ');
    reply.status = 0;
    for (size_t i = space + 1; space != line.npos && i < line.size() && i < space + 4; ++i) {
      if (line[i] >= '0' && line[i] <= '9') reply.status = reply.status * 10 + (line[i] - '0');
    }
    reply.headers.clear();
    return size;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || reply.headers.size() >= kMaxHeaders) return size;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  reply.headers[std::move(name)] = Trim(line.substr(colon + 1));
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

void SetOptions(const CurlLibrary& curl, CURL* handle, Exchange& exchange, curl_slist* headers) {
  curl.easy_setopt(handle, CURLOPT_URL, exchange.request.url.c_str());
  curl.easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl.easy_setopt(handle, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl.easy_setopt(handle, CURLOPT_HEADERDATA, &exchange);
  curl.easy_setopt(handle, CURLOPT_WRITEFUNCTION, &OnBody);
  curl.easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  // Keys may have dots that mean folders elsewhere; what is signed must be what is sent.
  curl.easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  curl.easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl.easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl.easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl.easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
  // A server that stands still is left; how long a large file takes is nobody's business.
  curl.easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl.easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, 20L);
  curl.easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl.easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L << 10);
}

}  // namespace

Transport::Transport(std::string ca_file) : ca_file_(std::move(ca_file)) {
  auto curl = CurlLibrary::Open();
  if (!curl.ok()) {
    missing_ = curl.status().message();
    return;
  }
  curl_ = std::move(*curl);
  curl_->global_init(CURL_GLOBAL_DEFAULT);
}

Transport::~Transport() {
  if (curl_ == nullptr) return;
  {
    base::MutexLock lock(mutex_);
    idle_.clear();
  }
  curl_->global_cleanup();
}

void Transport::CloseHandle::operator()(void* handle) const {
  const WithoutSigpipe guard;
  curl->easy_cleanup(handle);
}

Transport::Handle Transport::TakeHandle() {
  {
    base::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      Handle handle = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  return Handle(curl_->easy_init(), {.curl = curl_.get()});
}

void Transport::KeepHandle(Handle handle) {
  curl_->easy_reset(handle.get());
  base::MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(handle));
}

HttpReply Transport::Get(const HttpRequest& request) {
  Exchange exchange{request, {}};
  if (curl_ == nullptr) {
    exchange.reply.failure = missing_;
    exchange.reply.is_final = true;
    return std::move(exchange.reply);
  }
  Handle handle = TakeHandle();
  if (handle == nullptr) {
    exchange.reply.failure = "out of memory";
    return std::move(exchange.reply);
  }
  std::unique_ptr<curl_slist, FreeList> headers(nullptr, {.curl = *curl_});
  for (const auto& [name, value] : request.headers) {
    curl_slist* const longer =
        curl_->slist_append(headers.get(), fmt::format("{}: {}", name, value).c_str());
    if (longer == nullptr) continue;
    static_cast<void>(headers.release());
    headers.reset(longer);
  }
  SetOptions(*curl_, handle.get(), exchange, headers.get());
  if (!ca_file_.empty()) curl_->easy_setopt(handle.get(), CURLOPT_CAINFO, ca_file_.c_str());
  const WithoutSigpipe guard;
  const CURLcode code = curl_->easy_perform(handle.get());
  if (code != CURLE_OK) {
    // The form in which Amazon's library tells it.
    exchange.reply.failure =
        fmt::format("curlCode: {}, {}", static_cast<int>(code), curl_->easy_strerror(code));
    exchange.reply.is_final |= code == CURLE_PEER_FAILED_VERIFICATION ||
                               code == CURLE_SSL_CACERT_BADFILE || code == CURLE_URL_MALFORMAT;
  }
  KeepHandle(std::move(handle));
  return std::move(exchange.reply);
}

}  // namespace nereid::s3
