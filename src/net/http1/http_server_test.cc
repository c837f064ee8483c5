// SPDX-License-Identifier: Apache-2.0
#include "http1/http_server.h"

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http1/http_server_fixture.h"

namespace nereid::http1 {
namespace {

using ::testing::HasSubstr;

TEST(HttpServer, ServesSeveralRequestsOnOneConnection) {
  Fixture f(Echo);
  Client client(f.port());
  for (int i = 0; i < 100; ++i) {
    const std::string body(static_cast<size_t>(i * 7), 'b');
    const auto reply = client.Exchange(Post(body));
    ASSERT_EQ(200, reply.status);
    ASSERT_EQ("POST /p " + body, reply.body);
  }
  const auto reply = client.Exchange("GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ("GET /a?b=c ", reply.body);
  EXPECT_EQ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n", reply.head);
}

TEST(HttpServer, ShowsTheHeadToItsHandler) {
  std::string seen;
  Fixture f([&](HttpExchangePtr e) {
    const HttpHead& head = e->head();
    seen = std::string(head.path()) + "|" + std::string(head.query()) + "|" +
           std::string(head.Header("x-ONE")) + "|" + std::string(head.Header("X-Two")) + "|" +
           (head.FindHeader("X-Two") ? "yes" : "no") + (head.FindHeader("X-Three") ? "yes" : "no") +
           "|" + std::to_string(head.headers().size());
    RespondText(std::move(e), "");
  });
  Client client(f.port());
  EXPECT_EQ(200,
            client.Exchange("GET /x/y?q=1&r HTTP/1.1\r\nHost: h\r\nX-One:  a b \r\nx-two:\r\n\r\n")
                .status);
  EXPECT_EQ("/x/y|q=1&r|a b||yesno|3", seen);
}

TEST(HttpServer, ServesPipelinedRequestsInOrder) {
  Fixture f(Echo);
  Client client(f.port());
  std::string requests;
  for (int i = 0; i < 300; ++i) requests += Post("body " + std::to_string(i));
  client.Send(requests);
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ("POST /p body " + std::to_string(i), client.Receive().body);
  }
}

TEST(HttpServer, ServesPipelinedRequestsInOrderFromAnotherThread) {
  Worker worker(Echo);
  Fixture f([&](HttpExchangePtr e) { worker.Add(std::move(e)); });
  Client client(f.port());
  std::string requests;
  for (int i = 0; i < 300; ++i) requests += Post("body " + std::to_string(i));
  std::thread sender([&] { client.Send(requests); });
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ("POST /p body " + std::to_string(i), client.Receive().body);
  }
  sender.join();
}

TEST(HttpServer, UnderstandsRequestsThatArriveByteByByte) {
  Fixture f(Echo);
  Client client(f.port());
  const std::string requests = Post("hello") + "GET / HTTP/1.1\r\nHost: h\r\n\r\n" +
                               "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n";
  for (const char c : requests) ASSERT_TRUE(client.Send({&c, 1}));
  EXPECT_EQ("POST /p hello", client.Receive().body);
  EXPECT_EQ("GET / ", client.Receive().body);
  EXPECT_EQ("POST /c abcde", client.Receive().body);
}

TEST(HttpServer, PutsTheSplitOfABodyOnAnAlignedAddress) {
  std::vector<size_t> misplaced;
  Fixture f([&](HttpExchangePtr e) {
    const size_t split = SplitOf(e->head());
    const auto address = reinterpret_cast<uintptr_t>(e->body().data() + split);
    misplaced.push_back(address % base::kBufferAlignment);
    const std::string body(e->body());
    volatile char padding = e->body().data()[e->body().size() + 63];
    (void)padding;
    RespondText(std::move(e), body);
  });
  Client client(f.port());
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    // Series of the same shape are placed by prediction, changes by copying, large ones directly.
    const size_t json = 1 + random() % 90;
    const size_t size = json + (i % 10 == 0 ? random() % 100'000 : 64);
    std::string body(size, 'x');
    for (char& c : body) c = static_cast<char>('a' + random() % 26);
    const std::string header = "Split: " + std::to_string(i % 3 == 0 ? json : 40) + "\r\n";
    if (i % 3 != 0 && size < 40) continue;
    if (i % 7 == 0) {
      std::string chunked =
          "POST /p HTTP/1.1\r\nHost: h\r\n" + header + "Transfer-Encoding: chunked\r\n\r\n";
      char line[16];
      for (size_t at = 0; at < size; at += 1000) {
        const size_t n = std::min<size_t>(1000, size - at);
        std::snprintf(line, sizeof line, "%zx\r\n", n);
        chunked += line + body.substr(at, n) + "\r\n";
      }
      ASSERT_EQ(body, client.Exchange(chunked + "0\r\n\r\n").body);
    } else {
      ASSERT_EQ(body, client.Exchange(Post(body, header)).body);
    }
  }
  for (const size_t m : misplaced) EXPECT_EQ(0u, m);
}

TEST(HttpServer, KeepsBodyBytesAliveAfterTheReply) {
  std::vector<std::pair<base::BufferRef, std::string_view>> kept;
  Fixture f(
      [&](HttpExchangePtr e) {
        kept.emplace_back(e->body_buffer(), e->body());
        RespondText(std::move(e), "");
      },
      {}, 1);
  Client client(f.port());
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(200, client.Exchange(Post("body " + std::to_string(i))).status);
  }
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ("body " + std::to_string(i), kept[static_cast<size_t>(i)].second);
}

TEST(HttpServer, SendsContinueBeforeItReadsTheBody) {
  Fixture f(Echo);
  Client client(f.port());
  client.Send("POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(100, client.Receive(false).status);
  client.Send("hello");
  EXPECT_EQ("POST /p hello", client.Receive().body);
  // The body arrived with the head: no interim reply.
  EXPECT_EQ(200, client.Exchange(Post("hello", "Expect: 100-continue\r\n")).status);
  EXPECT_EQ(417, client.Exchange(Post("hello", "Expect: more\r\n")).status);
}

TEST(HttpServer, RespondsToHeadWithoutABody) {
  Fixture f(Echo);
  Client client(f.port());
  client.Send("HEAD /h HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.Receive(false).head, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_EQ("GET / ", client.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").body);
}

TEST(HttpServer, ClosesWhenAsked) {
  Fixture f(Echo);
  Client client(f.port());
  const auto reply = client.Exchange("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(reply.head, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(client.Closed());
  Client old(f.port());
  EXPECT_THAT(old.Exchange("GET / HTTP/1.0\r\n\r\n").head, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(old.Closed());
  Client old_alive(f.port());
  const char* keep = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_THAT(old_alive.Exchange(keep).head, HasSubstr("Connection: keep-alive\r\n"));
  EXPECT_EQ(200, old_alive.Exchange(keep).status);
}

TEST(HttpServer, EchoesLargeBodies) {
  HttpServerOptions options;
  Fixture f(
      [](HttpExchangePtr e) {
        HttpBodyPart part{e->body().data(), e->body().size(), e->body_buffer()};
        HttpExchange::Respond(std::move(e), {.parts = {&part, 1}});
      },
      options);
  Client client(f.port());
  std::string body(size_t{64} << 20, '\0');
  for (size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>(i);
  for (int round = 0; round < 2; ++round) {
    std::thread sender([&] { client.Send(Post(body)); });
    const auto reply = client.Receive();
    sender.join();
    ASSERT_EQ(200, reply.status);
    ASSERT_TRUE(reply.body == body);
  }
}

TEST(HttpServer, SendsRepliesOfManyParts) {
  struct Owner final : HttpReplyOwner {
    std::vector<std::string> pieces;
    std::atomic<int>* sent;
    void ReplySent() override {
      ++*sent;
      delete this;
    }
  };
  std::atomic<int> sent{0};
  Fixture f([&](HttpExchangePtr e) {
    auto* owner = new Owner;
    owner->sent = &sent;
    std::vector<HttpBodyPart> parts;
    for (int i = 0; i < 200; ++i) owner->pieces.push_back("piece " + std::to_string(i) + ";");
    for (const std::string& piece : owner->pieces)
      parts.push_back({piece.data(), piece.size(), {}});
    HttpExchange::Respond(std::move(e), {.text = "head;", .parts = parts, .owner = owner});
  });
  Client client(f.port());
  std::string expected = "head;";
  for (int i = 0; i < 200; ++i) expected += "piece " + std::to_string(i) + ";";
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(expected, client.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").body);
  }
  f.server.reset();
  EXPECT_EQ(20, sent.load());
}

TEST(HttpServer, RespondsFromAnotherThreadUnderLoad) {
  Worker one(Echo);
  Worker two(Echo);
  std::atomic<unsigned> turn{0};
  Fixture f([&](HttpExchangePtr e) { (turn++ % 2 == 0 ? one : two).Add(std::move(e)); });
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&f, c] {
      Client client(f.port());
      for (int i = 0; i < 500; ++i) {
        const std::string body = std::to_string(c) + "/" + std::to_string(i) +
                                 std::string(static_cast<size_t>(i % 50) * 997, 'z');
        const auto reply = client.Exchange(Post(body));
        ASSERT_EQ(200, reply.status);
        ASSERT_EQ("POST /p " + body, reply.body);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(HttpServer, RespondsAfterARoundOnTheSameReactor) {
  struct Batcher {
    std::vector<HttpExchangePtr> waiting;
    size_t largest = 0;
    void Run() {
      largest = std::max(largest, waiting.size());
      std::vector<HttpExchangePtr> now;
      now.swap(waiting);
      for (HttpExchangePtr& e : now) Echo(std::move(e));
    }
  };
  Batcher batcher;
  Fixture f(
      [&](HttpExchangePtr e) {
        net::Reactor& reactor = e->reactor();
        ASSERT_TRUE(reactor.IsCurrent());
        if (batcher.waiting.empty()) reactor.RunAfterRound([&batcher] { batcher.Run(); });
        batcher.waiting.push_back(std::move(e));
      },
      {}, 1);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&f, c] {
      Client client(f.port());
      for (int i = 0; i < 300; ++i) {
        const std::string body = std::to_string(c * 1000 + i);
        // Two at a time, so that one waits in the buffer while the server replies to the other.
        client.Send(Post(body + "a") + Post(body + "b"));
        ASSERT_EQ("POST /p " + body + "a", client.Receive().body);
        ASSERT_EQ("POST /p " + body + "b", client.Receive().body);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GE(batcher.largest, 1u);
}

TEST(HttpServer, ReportsAPortInUse) {
  Fixture f(Echo);
  HttpServerOptions options;
  options.listener = {.address = "127.0.0.1", .port = f.port()};
  const auto second = HttpServer::Start(options, f.pool, f.handler);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(base::StatusCode::kUnavailable, second.status().code());
  EXPECT_EQ("Socket '127.0.0.1:" + std::to_string(f.port()) + "' already in use ",
            second.status().message());
}

TEST(HttpServer, SeveralServersMayShareAPort) {
  FunctionHandler handler(Echo);
  net::ReactorPool pool(1);
  HttpServerOptions options;
  options.listener = {.address = "127.0.0.1", .port = 0, .reuse_port = true};
  auto first = HttpServer::Start(options, pool, handler);
  ASSERT_TRUE(first.ok());
  options.listener.port = (*first)->port();
  EXPECT_TRUE(HttpServer::Start(options, pool, handler).ok());
}

}  // namespace
}  // namespace nereid::http1
