// SPDX-License-Identifier: Apache-2.0
// A gRPC client with a blocking socket, for the tests of servers.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "http2/testing/client.h"

namespace nereid::http2 {

// TestClient on a socket. Its calls are sent at once.
class Client {
 public:
  // How long a test waits for something that must come.
  static constexpr std::chrono::milliseconds kLong{20'000};

  explicit Client(uint16_t port, uint32_t window = 1 << 30) : client_(window) {
    socket_ = base::UniqueFd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    Flush();
  }

  int32_t Call(const std::string& path, std::string body, const TestClient::Headers& more = {},
               bool open = false) {
    const int32_t id = client_.Call(TestClient::CallHeaders(path, more), std::move(body), open);
    Flush();
    return id;
  }
  void SendMore(int32_t id, const std::string& bytes, bool open) {
    client_.SendMore(id, bytes, open);
    Flush();
  }
  void Reset(int32_t id) {
    client_.Reset(id);
    Flush();
  }
  void Ping() {
    client_.Ping();
    Flush();
  }

  // Reads until `done`; returns false if the connection ended or it takes too long.
  bool Until(const std::function<bool()>& done) {
    const base::TimePoint deadline = std::chrono::steady_clock::now() + kLong;
    while (!done()) {
      pollfd waiting{socket_.get(), POLLIN, 0};
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (::poll(&waiting, 1, 100) <= 0) continue;
      char bytes[65536];
      const ssize_t n = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
      if (n <= 0) {
        is_closed_ = true;
        return done();
      }
      client_.Feed({bytes, static_cast<size_t>(n)});
      Flush();
    }
    return true;
  }
  const Reply& Finish(int32_t id) {
    EXPECT_TRUE(Until([this, id] { return reply(id).is_closed || is_closed_; }));
    return reply(id);
  }
  // Returns when server and client have exchanged their settings.
  void Settle() {
    const int before = pongs();
    Ping();
    EXPECT_TRUE(Until([this, before] { return pongs() > before; }));
  }
  // Sends frames behind the back of the client's session.
  void SendRaw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(n, 0);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  const Reply& reply(int32_t id) { return client_.reply(id); }
  int pongs() const { return client_.pongs(); }
  int goaways() const { return client_.goaways(); }
  uint32_t goaway_code() const { return client_.goaway_code(); }
  bool is_closed() const { return is_closed_; }
  int fd() const { return socket_.get(); }

 private:
  void Flush() {
    const std::string bytes = client_.TakeOutput();
    for (std::string_view left = bytes; !left.empty();) {
      const ssize_t n = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      left.remove_prefix(static_cast<size_t>(n));
    }
  }

  base::UniqueFd socket_;
  TestClient client_;
  bool is_closed_ = false;
};

}  // namespace nereid::http2
