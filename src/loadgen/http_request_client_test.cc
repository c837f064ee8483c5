// SPDX-License-Identifier: Apache-2.0
// The client of HTTP with the test in the server's place.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "loadgen/request_client.h"

namespace nereid::loadgen {
namespace {

constexpr std::string_view kRequest = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// How a request ended.
struct End {
  size_t call;
  Ending ending;
  std::string text;
};

class HttpRequestClientTest : public testing::Test {
 protected:
  HttpRequestClientTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    target_.address = *Address::Tcp("127.0.0.1", std::to_string(ntohs(address.sin_port)));
  }

  void Begin(size_t call, std::string_view request = kRequest) {
    ends_.clear();
    ASSERT_TRUE(client_->Begin(call, request).ok());
  }
  // Accepts the connection that was begun last and reads a request.
  base::UniqueFd Accept() {
    base::UniqueFd connection(accept(listener_.get(), nullptr, nullptr));
    ReadRequest(connection);
    return connection;
  }
  // Lets the client send until the server has a request.
  static void ReadRequest(const base::UniqueFd& connection) {
    std::string request;
    while (!request.ends_with("\r\n\r\n")) {
      char bytes[1024];
      const ssize_t count = recv(connection.get(), bytes, sizeof bytes, 0);
      ASSERT_GT(count, 0);
      request.append(bytes, static_cast<size_t>(count));
    }
    EXPECT_EQ(request, kRequest);
  }
  static void Reply(const base::UniqueFd& connection, std::string_view text) {
    ASSERT_EQ(write(connection.get(), text.data(), text.size()), std::ssize(text));
  }
  // Handles events until a request has ended.
  End WaitForEnd() {
    while (ends_.empty()) {
      poller_.Wait(60'000, [this](void* user, uint32_t events) { client_->Handle(user, events); });
    }
    EXPECT_EQ(ends_.size(), 1U);
    return ends_[0];
  }
  // Has the server reply to a request on a connection of its own.
  End EndOf(std::string_view reply) {
    Begin(0);
    const base::UniqueFd server = Accept();
    Reply(server, reply);
    shutdown(server.get(), SHUT_WR);
    End end = WaitForEnd();
    client_->Abandon(0);
    return end;
  }

  base::UniqueFd listener_;
  Target target_;
  Poller poller_;
  std::vector<End> ends_;
  std::unique_ptr<RequestClient> client_ = MakeHttpClient(
      target_, 4, poller_, [this](size_t call, Ending ending, std::string_view text) {
        ends_.push_back({call, ending, std::string(text)});
      });
};

TEST_F(HttpRequestClientTest, UsesAConnectionForOneRequestAfterTheOther) {
  Begin(2);
  const base::UniqueFd server = Accept();
  for (int i = 0; i < 3; ++i) {
    Reply(server, kOk);
    const End end = WaitForEnd();
    EXPECT_EQ(end.call, 2U);
    EXPECT_EQ(end.ending, Ending::kSuccess);
    Begin(2);
    ReadRequest(server);
  }
}

TEST_F(HttpRequestClientTest, MakesAConnectionAnewThatTheServerClosesBehindItsReply) {
  for (int i = 0; i < 2; ++i) {
    Begin(0);
    const base::UniqueFd server = Accept();
    Reply(server, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(WaitForEnd().ending, Ending::kSuccess);
  }
}

TEST_F(HttpRequestClientTest, ShowsTheServersWordsForARefusalInOneLine) {
  const auto text_of = [this](std::string_view body) {
    const End end =
        EndOf(fmt::format("HTTP/1.1 400 Bad\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    EXPECT_EQ(end.ending, Ending::kRefused);
    return end.text;
  };
  EXPECT_EQ(text_of(R"({"error":"no model 'a'"})"), "no model 'a'");
  EXPECT_EQ(text_of(R"({"id":"", "error" : "a \"b\" \\ c"})"), "a \"b\" \\ c");
  EXPECT_EQ(text_of(R"({"error":"failed:\nTraceback\tx"})"), "failed: Traceback x");
  EXPECT_EQ(text_of(R"({"error":"cut off)"), "cut off");
  EXPECT_EQ(text_of(R"({"error":"ends so\)"), "ends so\\");
  EXPECT_EQ(text_of(R"({"error":{"code":7}})"), R"(HTTP status 400: {"error":{"code":7}})");
  EXPECT_EQ(text_of("plain\r\nmore"), "HTTP status 400: plain");
  EXPECT_EQ(text_of(""), "HTTP status 400");
}

TEST_F(HttpRequestClientTest, TellsALostReplyFromARefusal) {
  const End closed = EndOf("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_EQ(closed.ending, Ending::kLost);
  EXPECT_EQ(closed.text, "the server closed the connection");
  EXPECT_EQ(EndOf("").ending, Ending::kLost);
  const End malformed = EndOf("HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n");
  EXPECT_EQ(malformed.ending, Ending::kLost);
  EXPECT_EQ(malformed.text, "the reply's content-length is not a number");
}

TEST_F(HttpRequestClientTest, GoesOnAfterAReplyToNoRequest) {
  Begin(0);
  base::UniqueFd server = Accept();
  Reply(server, kOk);
  WaitForEnd();
  ends_.clear();
  Reply(server, kOk);
  poller_.Wait(60'000, [this](void* user, uint32_t events) { client_->Handle(user, events); });
  EXPECT_TRUE(ends_.empty());
  Begin(0);
  server = Accept();
  Reply(server, kOk);
  EXPECT_EQ(WaitForEnd().ending, Ending::kSuccess);
}

TEST_F(HttpRequestClientTest, ReportsNothingOfARequestThatWasAbandoned) {
  Begin(1);
  const base::UniqueFd abandoned = Accept();
  client_->Abandon(1);
  Begin(1);
  const base::UniqueFd server = Accept();
  Reply(abandoned, "HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n");
  Reply(server, kOk);
  EXPECT_EQ(WaitForEnd().ending, Ending::kSuccess);
}

TEST_F(HttpRequestClientTest, SaysThatThereIsNoServer) {
  listener_.Close();
  const base::Status begun = client_->Begin(0, kRequest);
  if (begun.ok()) {
    const End end = WaitForEnd();
    EXPECT_EQ(end.ending, Ending::kNoServer);
    EXPECT_EQ(end.text, "Connection refused");
  } else {
    EXPECT_EQ(begun.message(), "Connection refused");
  }
}

}  // namespace
}  // namespace nereid::loadgen
