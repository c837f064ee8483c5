// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of HttpServer: a client that reads whole replies, a server whose handler is a
// function, and a thread that replies.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "http1/http_server.h"

namespace nereid::http1 {

// A blocking client socket that reads whole replies.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(0, ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval limit{30, 0};  // a test that would hang fails instead
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }

  int fd() const { return socket_.get(); }

  bool Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  struct Reply {
    int status = 0;
    std::string head;
    std::string body;
  };

  // Reads one reply; status 0 if the connection ended first.
  Reply Receive(bool has_body = true) {
    Reply reply;
    size_t end;
    while ((end = buffered_.find("\r\n\r\n")) == std::string::npos) {
      if (!More()) return reply;
    }
    reply.head = buffered_.substr(0, end + 2);
    buffered_.erase(0, end + 4);
    size_t length = 0;
    if (const size_t at = reply.head.find("\r\nContent-Length: "); at != std::string::npos) {
      length = std::stoul(reply.head.substr(at + 18));
    }
    while (has_body && buffered_.size() < length) {
      if (!More()) return reply;
    }
    if (has_body) {
      reply.body = buffered_.substr(0, length);
      buffered_.erase(0, length);
    }
    reply.status = std::stoi(reply.head.substr(9, 3));
    return reply;
  }

  Reply Exchange(std::string_view text) {
    Send(text);
    return Receive();
  }

  std::string ReceiveBytes(size_t n) {
    while (buffered_.size() < n && More()) {
    }
    const std::string bytes = buffered_.substr(0, n);
    buffered_.erase(0, n);
    return bytes;
  }

  // Reads everything until the server closes.
  std::string ReceiveAll() {
    while (More()) {
    }
    return std::exchange(buffered_, {});
  }

  bool Closed() { return buffered_.empty() && !More(); }
  void Reset() {
    const linger hard{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    socket_.Close();
  }
  void Close() { socket_.Close(); }

 private:
  bool More() {
    char chunk[65536];
    const ssize_t n = ::recv(socket_.get(), chunk, sizeof chunk, 0);
    if (n <= 0) return false;
    buffered_.append(chunk, static_cast<size_t>(n));
    return true;
  }

  base::UniqueFd socket_;
  std::string buffered_;
};

// Returns the field "split" of a request, which says which byte of its body must be aligned.
inline size_t SplitOf(const HttpHead& head) {
  const std::string_view text = head.Header("split");
  size_t split = HttpBodyPlan::kNoSplit;
  std::from_chars(text.data(), text.data() + text.size(), split);
  return split;
}

// Calls a function with each request.
class FunctionHandler final : public HttpHandler {
 public:
  using Function = std::function<void(HttpExchangePtr)>;
  explicit FunctionHandler(Function function) : function_(std::move(function)) {}
  HttpBodyPlan PlanBody(const HttpHead& head, size_t max_bytes) override {
    return {.max_bytes = max_bytes, .split = SplitOf(head)};
  }
  base::BufferRef BodyBuffer(const HttpHead&, const HttpBodyPlan&, size_t size) override {
    return body_buffer ? body_buffer(size) : base::BufferRef();
  }
  HttpErrorBody ErrorBody(std::string_view text) override {
    return {.content_type = "text/error", .text = "error: " + std::string(text)};
  }
  void Handle(HttpExchangePtr exchange) override { function_(std::move(exchange)); }

  std::function<base::BufferRef(size_t)> body_buffer;

 private:
  Function function_;
};

inline void RespondText(HttpExchangePtr exchange, std::string_view text, int status = 200) {
  HttpExchange::Respond(std::move(exchange),
                        {.status = status, .content_type = "text/plain", .text = text});
}

// Replies with "METHOD target body".
inline void Echo(HttpExchangePtr exchange) {
  const std::string text = std::string(exchange->head().method_text()) + " " +
                           std::string(exchange->head().target()) + " " +
                           std::string(exchange->body());
  RespondText(std::move(exchange), text);
}

struct Fixture {
  explicit Fixture(FunctionHandler::Function function, HttpServerOptions options = {},
                   unsigned reactors = 2)
      : pool(reactors), handler(std::move(function)) {
    options.listener.address = "127.0.0.1";
    auto started = HttpServer::Start(options, pool, handler);
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    server = std::move(started).value();
  }
  uint16_t port() const { return server->port(); }

  net::ReactorPool pool;
  FunctionHandler handler;
  std::unique_ptr<HttpServer> server;
};

// A thread that replies to exchanges.
class Worker {
 public:
  explicit Worker(std::function<void(HttpExchangePtr)> respond)
      : respond_(std::move(respond)), thread_("worker", [this] { Run(); }) {}
  ~Worker() {
    {
      base::MutexLock lock(mutex_);
      stop_ = true;
    }
    ready_.NotifyAll();
  }
  void Add(HttpExchangePtr exchange) {
    {
      base::MutexLock lock(mutex_);
      queue_.push_back(std::move(exchange));
    }
    ready_.NotifyOne();
  }

 private:
  void Run() {
    for (;;) {
      HttpExchangePtr exchange;
      {
        base::MutexLock lock(mutex_);
        while (queue_.empty() && !stop_) ready_.Wait(mutex_);
        if (queue_.empty()) return;
        exchange = std::move(queue_.front());
        queue_.pop_front();
      }
      respond_(std::move(exchange));
    }
  }
  std::function<void(HttpExchangePtr)> respond_;
  base::Mutex mutex_;
  base::CondVar ready_;
  std::deque<HttpExchangePtr> queue_;
  bool stop_ = false;
  base::Thread thread_;
};

inline std::string Post(std::string_view body, std::string_view headers = "") {
  return "POST /p HTTP/1.1\r\nHost: h\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace nereid::http1
