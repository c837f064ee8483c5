// SPDX-License-Identifier: Apache-2.0
#include "loadgen/stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace nereid::loadgen {
namespace {

using Outcome = Stream::Outcome;

void WaitFor(int fd, short events) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  ASSERT_EQ(poll(&one, 1, 60'000), 1);
}

// A server on the loopback device that the test plays.
class StreamTest : public testing::Test {
 protected:
  StreamTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = std::to_string(ntohs(address.sin_port));
  }

  Stream Connect(const std::shared_ptr<const TlsSettings>& tls = nullptr) {
    const auto address = Address::Tcp("127.0.0.1", port_);
    EXPECT_TRUE(address.ok());
    auto stream = Stream::Connect(*address, tls);
    EXPECT_TRUE(stream.ok());
    return *std::move(stream);
  }
  base::UniqueFd Accept() { return base::UniqueFd(accept(listener_.get(), nullptr, nullptr)); }
  // Receives until the stream has more than nothing to say.
  static Outcome Receive(Stream& stream, std::string& to) {
    char bytes[4096];
    size_t count = 0;
    for (;;) {
      WaitFor(stream.fd(), POLLIN);
      const Outcome outcome = stream.Receive(bytes, sizeof bytes, count);
      if (outcome == Outcome::kSome) to.append(bytes, count);
      if (outcome != Outcome::kNothingYet) return outcome;
    }
  }

  base::UniqueFd listener_;
  std::string port_;
};

TEST_F(StreamTest, HasNothingYetBeforeTheServerSpeaks) {
  Stream stream = Connect();
  const base::UniqueFd server = Accept();
  char bytes[8];
  size_t count = 77;
  EXPECT_EQ(stream.Receive(bytes, sizeof bytes, count), Outcome::kNothingYet);
  EXPECT_FALSE(stream.was_established());
  EXPECT_FALSE(stream.has_received());
  EXPECT_TRUE(stream.failure().empty());
}

TEST_F(StreamTest, CarriesAllBytesInOrderThoughTheServerIsSlow) {
  Stream stream = Connect();
  const base::UniqueFd server = Accept();
  std::string sent(8 << 20, '\0');
  std::mt19937 random(1);
  for (char& c : sent) c = static_cast<char>(random());
  std::string received;
  size_t at = 0;
  bool was_full = false;
  while (received.size() < sent.size()) {
    size_t count = 0;
    const bool is_left = at < sent.size();
    const Outcome outcome =
        is_left ? stream.Send(std::string_view(sent).substr(at), count) : Outcome::kNothingYet;
    ASSERT_NE(outcome, Outcome::kEnd) << stream.failure();
    if (outcome == Outcome::kSome) {
      at += count;
      continue;
    }
    was_full = was_full || is_left;
    char bytes[65536];
    const ssize_t taken = recv(server.get(), bytes, sizeof bytes, 0);
    ASSERT_GT(taken, 0);
    received.append(bytes, static_cast<size_t>(taken));
  }
  EXPECT_TRUE(was_full);
  EXPECT_TRUE(received == sent);
  EXPECT_TRUE(stream.was_established());
}

TEST_F(StreamTest, TellsAnOrderlyEndFromABrokenConnection) {
  Stream stream = Connect();
  {
    const base::UniqueFd server = Accept();
    ASSERT_EQ(write(server.get(), "bye", 3), 3);
  }
  std::string received;
  EXPECT_EQ(Receive(stream, received), Outcome::kSome);
  EXPECT_EQ(received, "bye");
  EXPECT_EQ(Receive(stream, received), Outcome::kEnd);
  EXPECT_EQ(stream.failure(), "");

  Stream broken = Connect();
  {
    const base::UniqueFd server = Accept();
    const linger at_once{.l_onoff = 1, .l_linger = 0};  // closing resets the connection
    setsockopt(server.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  EXPECT_EQ(Receive(broken, received), Outcome::kEnd);
  EXPECT_EQ(broken.failure(), "Connection reset by peer");
  EXPECT_FALSE(broken.was_established());
}

TEST_F(StreamTest, SaysThatNoServerListens) {
  listener_.Close();
  const auto address = Address::Tcp("127.0.0.1", port_);
  ASSERT_TRUE(address.ok());
  auto stream = Stream::Connect(*address, nullptr);
  std::string why(stream.ok() ? "" : stream.status().message());
  if (stream.ok()) {
    std::string none;
    EXPECT_EQ(Receive(*stream, none), Outcome::kEnd);
    why = stream->failure();
  }
  EXPECT_EQ(why, "Connection refused");
}

TEST_F(StreamTest, DoesNotEndTheProcessWhenTheServerIsGone) {
  Stream stream = Connect();
  {
    const base::UniqueFd server = Accept();
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(server.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  WaitFor(stream.fd(), POLLIN);
  size_t count = 0;
  EXPECT_EQ(stream.Send("a", count), Outcome::kEnd);
  EXPECT_EQ(stream.Send("a", count), Outcome::kEnd);  // a broken pipe, without its signal
  EXPECT_FALSE(stream.failure().empty());
}

TEST_F(StreamTest, WithTlsSaysThatTheServerSpeaksNone) {
  auto tls = TlsSettings::Create({}, "http/1.1", "localhost");
  ASSERT_TRUE(tls.ok());
  Stream stream = Connect(*tls);
  const base::UniqueFd server = Accept();
  size_t count = 0;
  EXPECT_EQ(stream.Send("GET / HTTP/1.1\r\n\r\n", count), Outcome::kNothingYet);
  constexpr std::string_view kPlain = "HTTP/1.1 400 Bad Request\r\n\r\n";
  ASSERT_EQ(write(server.get(), kPlain.data(), kPlain.size()), std::ssize(kPlain));
  std::string received;
  EXPECT_EQ(Receive(stream, received), Outcome::kEnd);
  EXPECT_EQ(received, "");
  EXPECT_FALSE(stream.failure().empty());
  EXPECT_FALSE(stream.was_established());
}

TEST_F(StreamTest, WithTlsSaysWhichFileIsWrong) {
  const auto no_ca =
      TlsSettings::Create({.ca = "/no/such/ca.pem", .cert = "", .key = ""}, "h2", "");
  ASSERT_FALSE(no_ca.ok());
  EXPECT_NE(no_ca.status().message().find("--ca '/no/such/ca.pem'"), std::string_view::npos);
  const auto no_cert = TlsSettings::Create({.ca = "", .cert = "/dev/null", .key = ""}, "h2", "");
  ASSERT_FALSE(no_cert.ok());
  EXPECT_NE(no_cert.status().message().find("--cert '/dev/null'"), std::string_view::npos);
}

TEST(Address, OfAHostThatDoesNotExistIsAnError) {
  const auto bad_port = Address::Tcp("127.0.0.1", "http or so");
  ASSERT_FALSE(bad_port.ok());
  EXPECT_NE(bad_port.status().message().find("127.0.0.1:http or so"), std::string_view::npos);
}

TEST(Address, OfLocalhostIsThatOfIpv4) {
  const auto address = Address::Tcp("localhost", "8000");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->family(), AF_INET);
}

TEST(Address, OfAUnixSocketLeavesRoomForItsEnd) {
  constexpr size_t kRoom = sizeof(sockaddr_un::sun_path);
  const auto longest = Address::Unix(std::string(kRoom - 1, 'a'));
  ASSERT_TRUE(longest.ok());
  EXPECT_EQ(longest->family(), AF_UNIX);
  EXPECT_FALSE(Address::Unix(std::string(kRoom, 'a')).ok());
}

}  // namespace
}  // namespace nereid::loadgen
