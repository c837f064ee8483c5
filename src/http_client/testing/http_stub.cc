// SPDX-License-Identifier: Apache-2.0
#include "http_client/testing/http_stub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/check.h"

namespace nereid::http_client {

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

size_t HttpStub::Connections() const {
  base::MutexLock lock(mutex_);
  return clients_.size();
}

bool HttpStub::Receive(int client, std::string& bytes, StubRequest& request) {
  const auto receive_until = [&](const auto& is_enough) {
    char piece[4096];
    while (!is_enough()) {
      const ssize_t count = ::recv(client, piece, sizeof piece, 0);
      if (count <= 0) return false;
      bytes.append(piece, static_cast<size_t>(count));
    }
    return true;
  };
  size_t end = 0;
  if (!receive_until([&] { return (end = bytes.find("\r\n\r\n")) != bytes.npos; })) return false;
  const std::string head = bytes.substr(0, end + 2);
  bytes.erase(0, end + 4);
  const size_t target = head.find(' ') + 1;
  request.method = head.substr(0, target - 1);
  request.target = head.substr(target, head.find(' ', target) - target);
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t line_end = head.find("\r\n", at);
    const std::string line = head.substr(at, line_end - at);
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      std::string name = line.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers[name] = line.substr(colon + 2);
    }
    at = line_end + 2;
  }
  const auto length = request.headers.find("content-length");
  const size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  if (!receive_until([&] { return bytes.size() >= size; })) return false;
  request.body = bytes.substr(0, size);
  bytes.erase(0, size);
  return true;
}

bool HttpStub::Reply(int client, const StubReply& reply) {
  std::string text = reply.raw;
  if (text.empty()) {
    text = fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", reply.status, reply.body.size());
    for (const auto& [name, value] : reply.headers) text += name + ": " + value + "\r\n";
    text += "\r\n" + reply.body.substr(0, reply.body.size() - reply.cut_off);
  }
  if (::send(client, text.data(), text.size(), MSG_NOSIGNAL) < 0) return false;
  const bool is_over = !reply.raw.empty() || reply.cut_off > 0;
  if (!is_over || reply.hangs) return true;
  ::shutdown(client, SHUT_RDWR);
  return false;
}

void HttpStub::Serve(int client) {
  std::string bytes;
  for (;;) {
    StubRequest request;
    if (!Receive(client, bytes, request)) return;
    {
      base::MutexLock lock(mutex_);
      targets_.push_back(request.target);
    }
    if (!Reply(client, handler_(request))) return;
  }
}

}  // namespace nereid::http_client
