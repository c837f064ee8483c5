// SPDX-License-Identifier: Apache-2.0
// The gRPC server against a client with a blocking socket.
#include "http2/grpc_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "http2/testing/socket_client.h"
#include "net/compression.h"

namespace nereid::http2 {
namespace {

using std::chrono::milliseconds;

base::TimePoint In(milliseconds duration) { return std::chrono::steady_clock::now() + duration; }
constexpr milliseconds kLong = Client::kLong;

// Counts events and lets tests wait for them.
class Events {
 public:
  void Add(const std::string& what) {
    base::MutexLock lock(mutex_);
    ++counts_[what];
    changed_.NotifyAll();
  }
  bool Wait(const std::string& what, int count = 1) {
    const base::TimePoint deadline = In(kLong);
    base::MutexLock lock(mutex_);
    while (counts_[what] < count) {
      if (!changed_.WaitUntil(mutex_, deadline)) return counts_[what] >= count;
    }
    return true;
  }
  int count(const std::string& what) {
    base::MutexLock lock(mutex_);
    return counts_[what];
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, int> counts_ NEREID_GUARDED_BY(mutex_);
};

// /echo responds to a unary call, /stream to every message, /thread from its own thread, /never not
// at all, /fail with a status.
class Handler final : public GrpcHandler {
 public:
  ~Handler() override {
    for (std::thread& thread : threads_) thread.join();
  }

  GrpcCallEvents* OnCall(GrpcCallRef call) override;

  Events events;

 private:
  friend class TestCall;
  std::vector<std::thread> threads_;
};

class TestCall final : public GrpcCallEvents {
 public:
  TestCall(Handler& handler, GrpcCallRef call) : handler_(handler), call_(std::move(call)) {}

  void OnMessage(base::BufferRef buffer, std::string_view message) override {
    handler_.events.Add("message");
    if (call_->path() == "/stream") {
      call_->Credit(message.size());
      return call_->Send(MakeMessage(std::move(buffer), message));
    }
    buffer_ = std::move(buffer);
    message_ = message;
  }
  void OnHalfClose() override {
    if (call_->path() == "/echo") {
      call_->SendAndFinish(MakeMessage(std::move(buffer_), message_));
    } else if (call_->path() == "/stream") {
      call_->Finish(GrpcStatus::kOk, {});
    } else if (call_->path() == "/fail") {
      call_->Finish(GrpcStatus::kInvalidArgument, "bad \xc3\xa4 100%\n");
    } else if (call_->path() == "/thread") {
      handler_.threads_.emplace_back(
          [call = GrpcCallRef(*call_), buffer = buffer_, message = message_]() mutable {
            call->SendAndFinish(MakeMessage(std::move(buffer), message));
          });
    }
  }
  void OnCancelled() override { handler_.events.Add("cancelled"); }
  void OnDone() override {
    handler_.events.Add("done");
    delete this;
  }

 private:
  static GrpcMessagePtr MakeMessage(base::BufferRef buffer, std::string_view message) {
    GrpcMessagePtr reply = GrpcMessage::Create();
    reply->Refer(reinterpret_cast<const std::byte*>(message.data()), message.size(),
                 std::move(buffer));
    return reply;
  }

  Handler& handler_;
  GrpcCallRef call_;
  base::BufferRef buffer_;
  std::string_view message_;
};

GrpcCallEvents* Handler::OnCall(GrpcCallRef call) {
  if (call->path() == "/nowhere") {
    call->Finish(GrpcStatus::kUnimplemented, {});
    return nullptr;
  }
  return new TestCall(*this, std::move(call));
}

class GrpcServerTest : public testing::Test {
 protected:
  void Start(GrpcServerOptions options = {}) {
    options.listener = {.address = "127.0.0.1"};
    auto server = GrpcServer::Start(options, pool_, handler_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
  }

  net::ReactorPool pool_{2};
  Handler handler_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(GrpcServerTest, ServesUnaryCalls) {
  Start();
  Client client(server_->port());
  const Reply& reply = client.Finish(client.Call("/echo", Prefixed("hello")));
  EXPECT_EQ(reply.headers.at(":status"), "200");
  EXPECT_EQ(reply.headers.at("content-type"), "application/grpc");
  EXPECT_EQ(reply.headers.at("grpc-accept-encoding"), "identity, deflate, gzip");
  EXPECT_EQ(reply.status(), "0");
  EXPECT_EQ(reply.messages(), std::vector<std::string>{"hello"});
}

TEST_F(GrpcServerTest, KeepsManyCallsOnOneConnectionApart) {
  Start();
  Client client(server_->port());
  std::map<int32_t, std::string> expected;
  for (int i = 0; i < 300; ++i) {
    const std::string text(static_cast<size_t>(i * 37), static_cast<char>('a' + i % 26));
    expected[client.Call(i % 2 == 0 ? "/echo" : "/thread", Prefixed(text))] = text;
  }
  for (const auto& [id, text] : expected) {
    EXPECT_EQ(client.Finish(id).messages(), std::vector<std::string>{text});
  }
}

TEST_F(GrpcServerTest, CarriesLargeMessagesThroughSmallWindows) {
  Start();
  Client client(server_->port(), 65535);
  std::string text(5'000'000, 'x');
  for (size_t i = 0; i < text.size(); i += 997) text[i] = static_cast<char>(i);
  const Reply& reply = client.Finish(client.Call("/echo", Prefixed(text)));
  EXPECT_EQ(reply.status(), "0");
  ASSERT_EQ(reply.messages().size(), 1u);
  EXPECT_TRUE(reply.messages()[0] == text);
}

TEST_F(GrpcServerTest, TakesLargeMessagesHoweverTheyAreCutIntoFrames) {
  Start();
  Client client(server_->port());
  client.Settle();
  uint32_t seed = 1;
  const std::vector<std::function<size_t(size_t)>> lengths = {
      [](size_t) { return 16384; },
      [](size_t) { return 100'000; },
      [](size_t) { return 1 << 20; },
      [](size_t i) { return i % 40 == 39 ? 9 : 16384; },
      [&](size_t) { return 1 + (seed = seed * 1664525 + 1013904223) % 40'000; },
      [](size_t i) { return i < 30 ? 16384 : 500; },
  };
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::string text = Noise(3'000'000 + i * 12'345, static_cast<uint32_t>(i));
    const int32_t id = client.Call("/echo", "", {}, true);
    std::string bytes;
    for (const std::string& frame : Cut(id, Prefixed(text), lengths[i])) bytes += frame;
    client.SendRaw(bytes);
    ASSERT_TRUE(client.Until([&] { return client.reply(id).status() != "none"; })) << i;
    ASSERT_EQ(client.reply(id).messages().size(), 1u) << i;
    EXPECT_TRUE(client.reply(id).messages()[0] == text) << i;
  }
}

TEST_F(GrpcServerTest, TakesLargeMessagesWithOtherFramesBetweenTheirs) {
  Start();
  Client client(server_->port());
  client.Settle();
  const std::string text = Noise(2'500'000, 7);
  const std::string other_text = Noise(2'000'000, 8);
  const int32_t id = client.Call("/echo", "", {}, true);
  const int32_t other_id = client.Call("/echo", "", {}, true);
  const auto frames = Cut(id, Prefixed(text), [](size_t) { return 16384; });
  const auto other = Cut(other_id, Prefixed(other_text), [](size_t) { return 16384; });
  std::string bytes;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i % 16 == 3) bytes += Frame(NGHTTP2_WINDOW_UPDATE, 0, 0, {"\0\0\0\1", 4});
    if (i % 16 == 7) bytes += Frame(NGHTTP2_DATA, 0, id, "");
    if (i == 20) {
      // The same payload with padding.
      const std::string payload = frames[i].substr(9);
      bytes +=
          Frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, id, '\x05' + payload + std::string(5, '\0'));
    } else {
      bytes += frames[i];
    }
    if (i >= 60 && i - 60 < other.size()) bytes += other[i - 60];
  }
  for (size_t i = frames.size() - 60; i < other.size(); ++i) bytes += other[i];
  client.SendRaw(bytes);
  for (const auto& [call, sent] : {std::pair{id, &text}, std::pair{other_id, &other_text}}) {
    ASSERT_TRUE(client.Until([&] { return client.reply(call).status() != "none"; }));
    ASSERT_EQ(client.reply(call).messages().size(), 1u);
    EXPECT_TRUE(client.reply(call).messages()[0] == *sent);
  }
}

TEST_F(GrpcServerTest, TakesOneLargeMessageAfterTheOtherFromFramesThatCrossTheirEnds) {
  Start();
  Client client(server_->port());
  client.Settle();
  const int32_t id = client.Call("/stream", "", {}, true);
  std::string all;
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < 6; ++i) {
    texts.push_back(Noise(i % 2 == 0 ? 700'000 + i : 3, i));
    all += Prefixed(texts.back());
  }
  std::string bytes;
  for (const std::string& frame : Cut(id, all, [](size_t) { return 16384; })) bytes += frame;
  client.SendRaw(bytes);
  ASSERT_TRUE(client.Until([&] { return client.reply(id).status() != "none"; }));
  EXPECT_TRUE(client.reply(id).messages() == texts);
}

TEST_F(GrpcServerTest, StreamsBothWays) {
  Start();
  Client client(server_->port());
  const int32_t id = client.Call("/stream", Prefixed("a") + Prefixed(""), {}, true);
  ASSERT_TRUE(client.Until([&] { return client.reply(id).messages().size() == 2; }));
  // A message in three pieces.
  const std::string last = Prefixed("last");
  client.SendMore(id, last.substr(0, 2), true);
  client.SendMore(id, last.substr(2, 5), true);
  client.SendMore(id, last.substr(7), false);
  EXPECT_EQ(client.Finish(id).messages(), (std::vector<std::string>{"a", "", "last"}));
  EXPECT_EQ(client.reply(id).status(), "0");
}

TEST_F(GrpcServerTest, EncodesStatusTexts) {
  Start();
  Client client(server_->port());
  const Reply& reply = client.Finish(client.Call("/fail", Prefixed("")));
  EXPECT_EQ(reply.status(), "3");
  EXPECT_EQ(reply.headers.at("grpc-message"), "bad %C3%A4 100%25%0A");
}

TEST_F(GrpcServerTest, RefusesRequestsThatAreNotGrpc) {
  Start();
  Client client(server_->port());
  const Reply& type = client.Finish(client.Call("/echo", "", {{"content-type", "text/html"}}));
  EXPECT_EQ(type.headers.at(":status"), "415");
  const Reply& method = client.Finish(client.Call("/echo", "", {{":method", "PUT"}}));
  EXPECT_EQ(method.headers.at(":status"), "405");
  EXPECT_EQ(client.Finish(client.Call("/nowhere", Prefixed("x"))).status(), "12");
  EXPECT_EQ(
      client.Finish(client.Call("/echo", Prefixed("x"), {{"grpc-encoding", "snappy"}})).status(),
      "12");
  EXPECT_EQ(client.Finish(client.Call("/echo", Prefixed("still here"))).status(), "0");
}

TEST_F(GrpcServerTest, TakesCompressedMessages) {
  Start();
  Client client(server_->port());
  std::string text(100'000, 'z');
  for (const auto& [type, name] : {std::pair(net::Compression::kGzip, "gzip"),
                                   std::pair(net::Compression::kDeflate, "deflate")}) {
    const iovec part{text.data(), text.size()};
    auto packed = net::Compress(type, {&part, 1});
    ASSERT_TRUE(packed.ok());
    const Reply& reply = client.Finish(
        client.Call("/echo", Prefixed(packed->data, true), {{"grpc-encoding", name}}));
    ASSERT_EQ(reply.messages().size(), 1u);
    EXPECT_TRUE(reply.messages()[0] == text);
  }
  EXPECT_EQ(client.Finish(client.Call("/echo", Prefixed("xx", true), {{"grpc-encoding", "gzip"}}))
                .status(),
            "13");
  EXPECT_EQ(client.Finish(client.Call("/echo", Prefixed("xx", true))).status(), "13");
}

TEST_F(GrpcServerTest, CompressesRepliesWhenTold) {
  GrpcServerOptions options;
  options.response_compression = GrpcCompressionLevel::kHigh;
  Start(options);
  Client client(server_->port());
  const std::string text(10'000, 'q');
  const Reply& reply = client.Finish(
      client.Call("/echo", Prefixed(text), {{"grpc-accept-encoding", "deflate, gzip"}}));
  EXPECT_EQ(reply.headers.at("grpc-encoding"), "gzip");
  EXPECT_LT(reply.body.size(), 1000u);
  EXPECT_EQ(reply.body[0], 1);
}

TEST_F(GrpcServerTest, BoundsDecompressedMessages) {
  GrpcServerOptions options;
  options.max_message_bytes = 1 << 20;
  Start(options);
  Client client(server_->port());
  std::string text(8 << 20, '\0');
  const iovec part{text.data(), text.size()};
  auto packed = net::Compress(net::Compression::kGzip, {&part, 1});
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(
      client.Finish(client.Call("/echo", Prefixed(packed->data, true), {{"grpc-encoding", "gzip"}}))
          .status(),
      "13");
}

TEST_F(GrpcServerTest, RefusesMessagesBeyondTheLimitBeforeTheyArrive) {
  GrpcServerOptions options;
  options.max_message_bytes = 1000;
  Start(options);
  Client client(server_->port());
  const Reply& reply =
      client.Finish(client.Call("/echo", std::string("\0\x7f\xff\xff\xff", 5), {}, true));
  EXPECT_EQ(reply.status(), "8");
  EXPECT_EQ(reply.headers.at("grpc-message"),
            "Received message larger than max (2147483647 vs. 1000)");
}

TEST_F(GrpcServerTest, ReportsBrokenFraming) {
  Start();
  Client client(server_->port());
  EXPECT_EQ(client.Finish(client.Call("/echo", std::string("\7\0\0\0\0", 5))).status(), "13");
  EXPECT_EQ(client.Finish(client.Call("/echo", Prefixed("cut off").substr(0, 8))).status(), "13");
}

TEST_F(GrpcServerTest, EndsCallsAtTheirDeadline) {
  Start();
  Client client(server_->port());
  const Reply& reply =
      client.Finish(client.Call("/never", Prefixed("x"), {{"grpc-timeout", "50m"}}));
  EXPECT_EQ(reply.status(), "4");
  EXPECT_EQ(reply.headers.at("grpc-message"), "Deadline Exceeded");
  EXPECT_TRUE(handler_.events.Wait("cancelled"));
  EXPECT_TRUE(handler_.events.Wait("done"));
}

TEST_F(GrpcServerTest, NotifiesTheHandlerWhenTheClientResets) {
  Start();
  Client client(server_->port());
  const int32_t id = client.Call("/never", Prefixed("x"));
  ASSERT_TRUE(handler_.events.Wait("message"));
  client.Reset(id);
  EXPECT_TRUE(handler_.events.Wait("cancelled"));
  EXPECT_TRUE(handler_.events.Wait("done"));
  EXPECT_EQ(client.Finish(client.Call("/echo", Prefixed("x"))).status(), "0");
}

TEST_F(GrpcServerTest, NotifiesTheHandlerWhenTheClientDisconnects) {
  Start();
  {
    Client client(server_->port());
    client.Call("/never", Prefixed("x"));
    client.Call("/never", Prefixed("y"), {}, true);
    ASSERT_TRUE(handler_.events.Wait("message", 2));
  }
  EXPECT_TRUE(handler_.events.Wait("cancelled", 2));
  EXPECT_TRUE(handler_.events.Wait("done", 2));
}

TEST_F(GrpcServerTest, ClosesOnRapidResets) {
  GrpcServerOptions options;
  options.resets_per_second = 10;
  Start(options);
  Client client(server_->port());
  for (int i = 0; i < 200; ++i) client.Reset(client.Call("/never", Prefixed("x"), {}, true));
  ASSERT_TRUE(client.Until([&] { return client.goaways() > 0 || client.is_closed(); }));
  EXPECT_EQ(client.goaway_code(), static_cast<uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
  EXPECT_TRUE(client.Until([&] { return client.is_closed(); }));
}

TEST_F(GrpcServerTest, AcknowledgesPingsAndStrikesOutEagerClients) {
  Start();
  Client client(server_->port());
  client.Ping();
  ASSERT_TRUE(client.Until([&] { return client.pongs() == 1; }));
  for (int i = 0; i < 4; ++i) client.Ping();
  ASSERT_TRUE(client.Until([&] { return client.goaways() > 0; }));
  EXPECT_EQ(client.goaway_code(), static_cast<uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
  EXPECT_TRUE(client.Until([&] { return client.is_closed(); }));
}

TEST_F(GrpcServerTest, PingsIdleClientsAndDropsTheDead) {
  GrpcServerOptions options;
  options.keepalive_time = milliseconds(30);
  options.keepalive_timeout = milliseconds(1000);
  options.keepalive_permit_without_calls = true;
  options.max_pings_without_data = 0;
  Start(options);
  Client alive(server_->port());
  EXPECT_EQ(alive.Finish(alive.Call("/echo", Prefixed("x"))).status(), "0");
  // A client that never responds.
  Client dead(server_->port());
  char byte;
  const base::TimePoint deadline = In(kLong);
  ssize_t n = 1;
  while (n > 0 && std::chrono::steady_clock::now() < deadline) n = ::recv(dead.fd(), &byte, 1, 0);
  EXPECT_LE(n, 0);
}

TEST_F(GrpcServerTest, BoundsTheHeaderList) {
  GrpcServerOptions options;
  options.max_header_list_bytes = 4096;
  Start(options);
  Client client(server_->port());
  const Reply& reply =
      client.Finish(client.Call("/echo", Prefixed("x"), {{"big", std::string(8000, 'b')}}));
  EXPECT_EQ(reply.status(), "8");
  EXPECT_EQ(client.Finish(client.Call("/echo", Prefixed("x"))).status(), "0");
}

TEST_F(GrpcServerTest, HoldsRequestsBackFromAStreamThatIsNotRead) {
  GrpcServerOptions options;
  options.max_stream_backlog_bytes = 1 << 20;
  Start(options);
  Client client(server_->port(),
                0);  // has no window for replies
  const std::string message = Prefixed(std::string(256 << 10, 'm'));
  std::string body;
  for (int i = 0; i < 40; ++i) body += message;
  const int32_t id = client.Call("/stream", body, {}, true);
  ASSERT_TRUE(client.Until([&] { return handler_.events.count("message") >= 4; }));
  client.Ping();
  ASSERT_TRUE(client.Until([&] { return client.pongs() == 1; }));
  EXPECT_LT(handler_.events.count("message"), 10);
  client.Reset(id);
  EXPECT_TRUE(handler_.events.Wait("done"));
}

TEST_F(GrpcServerTest, DrainsGracefully) {
  Start();
  Client client(server_->port());
  const int32_t id = client.Call("/stream", Prefixed("before"), {}, true);
  ASSERT_TRUE(client.Until([&] { return client.reply(id).messages().size() == 1; }));
  bool drained = false;
  std::thread drainer([&] { drained = server_->Drain(In(kLong)); });
  ASSERT_TRUE(client.Until([&] { return client.goaways() == 2; }));
  client.SendMore(id, Prefixed("after"), false);
  EXPECT_EQ(client.Finish(id).messages(), (std::vector<std::string>{"before", "after"}));
  EXPECT_TRUE(client.Until([&] { return client.is_closed(); }));
  drainer.join();
  EXPECT_TRUE(drained);
}

TEST_F(GrpcServerTest, ClosesWhatDoesNotFinishByTheDrainDeadline) {
  Start();
  Client client(server_->port());
  client.Call("/never", Prefixed("x"));
  ASSERT_TRUE(handler_.events.Wait("message"));
  bool drained = true;
  std::thread drainer([&] { drained = server_->Drain(In(milliseconds(50))); });
  EXPECT_TRUE(client.Until([&] { return client.is_closed(); }));
  drainer.join();
  EXPECT_FALSE(drained);
  EXPECT_TRUE(handler_.events.Wait("done"));
}

TEST_F(GrpcServerTest, SurvivesGarbage) {
  Start();
  for (const char* bytes :
       {"GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff"}) {
    Client client(server_->port());
    (void)::send(client.fd(), bytes, std::strlen(bytes), MSG_NOSIGNAL);
  }
  Client client(server_->port());
  EXPECT_EQ(client.Finish(client.Call("/echo", Prefixed("x"))).status(), "0");
}

}  // namespace
}  // namespace nereid::http2
