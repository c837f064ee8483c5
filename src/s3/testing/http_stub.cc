// SPDX-License-Identifier: Apache-2.0
#include "s3/testing/http_stub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace nereid::s3 {

HttpStub::HttpStub(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  NEREID_CHECK(::bind(listener_, generic, size) == 0 && ::listen(listener_, 64) == 0);
  NEREID_CHECK(::getsockname(listener_, generic, &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpStub::~HttpStub() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  std::list<std::thread> threads;
  {
    base::MutexLock lock(mutex_);
    for (const int client : clients_) ::shutdown(client, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  for (const int client : clients_) ::close(client);
  ::close(listener_);
}

std::string HttpStub::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::vector<std::string> HttpStub::Targets() const {
  base::MutexLock lock(mutex_);
  return targets_;
}

void HttpStub::Accept() {
  for (;;) {
    const int client = ::accept(listener_, nullptr, nullptr);
    if (client < 0) return;
    base::MutexLock lock(mutex_);
    clients_.push_back(client);
    threads_.emplace_back([this, client] { Serve(client); });
  }
}

void HttpStub::Serve(int client) {
  std::string bytes;
  char piece[4096];
  for (;;) {
    size_t end = bytes.find("\r\n\r\n");
    while (end == std::string::npos) {
      const ssize_t count = ::recv(client, piece, sizeof piece, 0);
      if (count <= 0) return;
      bytes.append(piece, static_cast<size_t>(count));
      end = bytes.find("\r\n\r\n");
    }
    StubRequest request;
    const std::string head = bytes.substr(0, end + 2);
    bytes.erase(0, end + 4);
    const size_t target = head.find(' ') + 1;
    request.target = head.substr(target, head.find(' ', target) - target);
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const size_t line_end = head.find("\r\n", at);
      const std::string line = head.substr(at, line_end - at);
      const size_t colon = line.find(": ");
      if (colon != std::string::npos)
        request.headers[line.substr(0, colon)] = line.substr(colon + 2);
      at = line_end + 2;
    }
    {
      base::MutexLock lock(mutex_);
      targets_.push_back(request.target);
    }
    const StubReply reply = handler_(request);
    std::string text =
        fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", reply.status, reply.body.size());
    for (const auto& [name, value] : reply.headers) text += name + ": " + value + "\r\n";
    text += "\r\n" + reply.body.substr(0, reply.body.size() - reply.cut_off);
    if (::send(client, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
    if (reply.cut_off > 0) {
      ::shutdown(client, SHUT_RDWR);
      return;
    }
  }
}

}  // namespace nereid::s3
