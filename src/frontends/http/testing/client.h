// SPDX-License-Identifier: Apache-2.0
// A client of one connection for the tests of this module.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace nereid::http {

struct Reply {
  int status = 0;
  std::string head;
  std::string body;
  bool Has(std::string_view line) const { return head.find(line) != std::string::npos; }
};

// A client that sends what a test says and reads one reply at a time.
class Client {
 public:
  explicit Client(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  Reply Read() {
    Reply reply;
    reply.head = ReadHead();
    if (reply.head.empty()) return reply;
    reply.status = std::stoi(reply.head.substr(9, 3));
    if (reply.Has("\r\nTransfer-Encoding: chunked\r\n")) {
      ReadChunks(reply);
      return reply;
    }
    const size_t at = reply.head.find("\r\nContent-Length: ");
    const size_t length = at == std::string::npos ? 0 : std::stoul(reply.head.substr(at + 18));
    while (in_.size() < length) {
      if (!Receive()) return reply;
    }
    reply.body = in_.substr(0, length);
    in_.erase(0, length);
    return reply;
  }
  // Reads the head of a reply whose body is then read by ReadChunk.
  std::string ReadHead() {
    size_t end = 0;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive()) return {};
    }
    std::string head = in_.substr(0, end + 2);
    in_.erase(0, end + 4);
    return head;
  }
  Reply Ask(std::string_view method, std::string_view path, std::string_view body = "",
            std::string_view headers = "") {
    Send(std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" +
         std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body));
    return Read();
  }
  void Close() { fd_.Close(); }

  // Reads the next chunk of a reply; empty at its end, and if it is truncated (`is_whole` is then
  // false).
  std::string ReadChunk() {
    size_t end = 0;
    while ((end = in_.find("\r\n")) == std::string::npos) {
      if (!Receive()) return {};
    }
    const size_t size = std::stoul(in_.substr(0, end), nullptr, 16);
    while (in_.size() < end + 4 + size) {
      if (!Receive()) return {};
    }
    std::string chunk = in_.substr(end + 2, size);
    in_.erase(0, end + 4 + size);
    is_whole = size == 0;
    return chunk;
  }

  bool is_whole = false;

 private:
  void ReadChunks(Reply& reply) {
    is_whole = false;
    for (std::string chunk = ReadChunk(); !chunk.empty(); chunk = ReadChunk()) reply.body += chunk;
  }
  bool Receive() {
    char bytes[4096];
    const ssize_t got = ::recv(fd_.get(), bytes, sizeof(bytes), 0);
    if (got <= 0) return false;
    in_.append(bytes, static_cast<size_t>(got));
    return true;
  }
  base::UniqueFd fd_;
  std::string in_;
};

}  // namespace nereid::http
