// SPDX-License-Identifier: Apache-2.0
// What a server must refuse or tolerate: malformed heads and bodies, limits, slow clients.

#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http1/http_server_fixture.h"

namespace nereid::http1 {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpServer, TakesExactlyTheAllowedNumberOfChunks) {
  Fixture f([](HttpExchangePtr e) {
    const size_t size = e->body().size();
    RespondText(std::move(e), std::to_string(size));
  });
  const std::string head = "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string chunks;
  for (int i = 0; i < 65'536; ++i) chunks += "1\r\nA\r\n";
  Client client(f.port());
  EXPECT_EQ("65536", client.Exchange(head + chunks + "0\r\n\r\n").body);
  const auto reply = client.Exchange(head + chunks + "1\r\nA\r\n0\r\n\r\n");
  EXPECT_EQ(400, reply.status);
  EXPECT_EQ(
      "error: Chunked request body exceeds maximum of 65536 non-empty chunks. "
      "Send fewer or larger HTTP chunks.",
      reply.body);
  EXPECT_TRUE(client.Closed());
}

TEST(HttpServer, RefusesWhatTwoServersCouldReadInTwoWays) {
  const char* const bad[] = {
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nhello",
      ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n"),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: "
       "5\r\n\r\n0\r\n\r\n"),
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n",
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n"),
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n",
      "GET / HTTP/1.1\nHost: h\n\n",
      "GET / HTTP/1.1\r\nHost: h\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nX: Host: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nX: y\r\nhost: i\r\n\r\n",
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: a\r\n "
       "folded\r\n\r\n"),
      "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n folded\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\n: no name\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n",
      "\x16\x03\x01\x02\n",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
       "chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
  };
  std::atomic<int> handled{0};
  Fixture f([&](HttpExchangePtr e) {
    ++handled;
    Echo(std::move(e));
  });
  for (const char* text : bad) {
    Client client(f.port());
    client.Send(std::string(text) + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n");
    const std::string all = client.ReceiveAll();
    EXPECT_THAT(all, StartsWith("HTTP/1.1 4")) << text;
    EXPECT_THAT(all, HasSubstr("Connection: close\r\n")) << text;
    EXPECT_THAT(all, Not(HasSubstr("smuggled"))) << text;
  }
  EXPECT_EQ(0, handled.load());
  for (const char* text : {"GET / HTTP/3.0\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n"}) {
    Client client(f.port());
    EXPECT_EQ(505, client.Exchange(text).status);
  }
}

TEST(HttpServer, BoundsTheHead) {
  Fixture f(Echo);
  {
    Client client(f.port());
    const std::string field = "X-Long: " + std::string(60'000, 'x') + "\r\n";
    EXPECT_EQ(200, client.Exchange("GET / HTTP/1.1\r\nHost: h\r\n" + field + "\r\n").status);
    EXPECT_EQ("POST /p ab", client.Exchange(Post("ab", field)).body);
  }
  {
    Client client(f.port());
    client.Send("GET / HTTP/1.1\r\nHost: h\r\nX-Long: " + std::string(200'000, 'x'));
    EXPECT_EQ(431, client.Receive().status);
  }
  {
    Client client(f.port());
    std::string fields;
    for (int i = 0; i < 200; ++i) fields += "X-" + std::to_string(i) + ": 1\r\n";
    EXPECT_EQ(431, client.Exchange("GET / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n").status);
  }
}

TEST(HttpServer, DiscardsOversizeBodiesAndContinues) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  Fixture f(
      [](HttpExchangePtr e) {
        const std::string text = (e->body_truncated() ? "cut " : "whole ") +
                                 std::to_string(e->body_size()) + " " + std::string(e->body());
        RespondText(std::move(e), text);
      },
      options);
  Client client(f.port());
  EXPECT_EQ("whole 1000 " + std::string(1000, 'x'),
            client.Exchange(Post(std::string(1000, 'x'))).body);
  EXPECT_EQ("cut 1001 ", client.Exchange(Post(std::string(1001, 'x'))).body);
  EXPECT_EQ(
      "cut 5000000 0123456789",
      client.Exchange(Post("0123456789" + std::string(4'999'990, 'x'), "Split: 10\r\n")).body);
  std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) chunked += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_EQ("cut 10000 ", client.Exchange(chunked + "0\r\n\r\n").body);
  EXPECT_EQ("whole 1 y", client.Exchange(Post("y")).body);
}

TEST(HttpServer, ReceivesBodiesWhereTheHandlerWantsThem) {
  alignas(base::kBufferAlignment) static std::array<std::byte, 1 << 20> memory;
  std::atomic<int> lent{0};
  std::atomic<int> released{0};
  Fixture f([&](HttpExchangePtr e) {
    const auto* const at = reinterpret_cast<const std::byte*>(e->body().data());
    const bool is_there = at >= memory.data() && at < memory.data() + memory.size();
    const std::string text = std::string(is_there ? "there " : "elsewhere ") +
                             (reinterpret_cast<uintptr_t>(at + 10) % 64 == 0 ? "aligned " : "") +
                             std::string(e->body().substr(0, 10));
    RespondText(std::move(e), text);
  });
  f.handler.body_buffer = [&](size_t size) -> base::BufferRef {
    if (size > memory.size()) return {};
    ++lent;
    return base::WrapLentBytes(
        memory.data(), memory.size(), [](void* user) { ++*static_cast<std::atomic<int>*>(user); },
        &released);
  };
  Client client(f.port());
  const std::string_view split = "Split: 10\r\n";
  const std::string large = "0123456789" + std::string(500'000, 'x');
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ("there aligned 0123456789", client.Exchange(Post(large, split)).body);
  }
  // A body larger than the lent memory.
  EXPECT_EQ("elsewhere aligned 0123456789",
            client.Exchange(Post(large + std::string(1 << 20, 'x'), split)).body);
  {
    Client leaves(f.port());
    leaves.Send(Post(large, split).substr(0, 100'000));
    while (lent < 4) std::this_thread::yield();
  }
  client.Close();
  while (released < lent) std::this_thread::yield();
  EXPECT_EQ(lent, 4);
}

TEST(HttpServer, DoesNotReadWithoutEnd) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  options.max_discard_bytes = 1000;
  Fixture f([](HttpExchangePtr e) { RespondText(std::move(e), "cut", 400); }, options);
  Client client(f.port());
  client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000000000000000\r\n\r\n");
  const auto reply = client.Receive();
  EXPECT_EQ(400, reply.status);
  EXPECT_THAT(reply.head, HasSubstr("Connection: close"));
  Client chunks(f.port());
  std::string text = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 30; ++i) text += "64\r\n" + std::string(100, 'x') + "\r\n";
  chunks.Send(text);
  EXPECT_EQ(413, chunks.Receive().status);
}

TEST(HttpServer, SurvivesBodiesThatEndEarly) {
  std::atomic<int> handled{0};
  Fixture f([&](HttpExchangePtr e) {
    ++handled;
    Echo(std::move(e));
  });
  for (int i = 0; i < 50; ++i) {
    Client client(f.port());
    client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" +
                std::string(static_cast<size_t>(i) * 500, 'x'));
    if (i % 2 == 0) {
      client.Reset();
    } else {
      client.Close();
    }
  }
  Client client(f.port());
  EXPECT_EQ(200, client.Exchange(Post("x")).status);
  EXPECT_EQ(1, handled.load());
}

TEST(HttpServer, SurvivesMutatedHeads) {
  Fixture f(Echo);
  const std::string seeds[] = {
      Post("hello", "Split: 2\r\n"),
      ("POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: "
       "t\r\n\r\n"),
      "GET /v2/models/m/versions/1?x=%20 HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n",
  };
  const char specials[] = "\r\n \t:;,\0/?%0159af";
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text = seeds[random() % 3];
    for (unsigned m = 1 + random() % 4; m > 0; --m) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = specials[random() % (sizeof specials - 1)];
          break;
        case 1:
          text[at] = static_cast<char>(random());
          break;
        case 2:
          text.erase(at, 1 + random() % 4);
          break;
        default:
          text.insert(at, 1, specials[random() % (sizeof specials - 1)]);
          break;
      }
      if (text.empty()) text = "x";
    }
    Client client(f.port());
    client.Send(text);
    ::shutdown(client.fd(), SHUT_WR);
    const std::string all = client.ReceiveAll();
    if (!all.empty()) {
      ASSERT_THAT(all, StartsWith("HTTP/1.1 ")) << text;
    }
  }
  Client client(f.port());
  EXPECT_EQ(200, client.Exchange(Post("x")).status);
}

TEST(HttpServer, GivesUpABodyOfWhichTooLittleComes) {
  HttpServerOptions options;
  options.body_window = std::chrono::milliseconds(1);
  options.min_body_bytes_per_s = 1'000'000'000;
  Fixture f(Echo, options);
  Client client(f.port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc");
  const auto reply = client.Receive();
  EXPECT_EQ(408, reply.status);
  EXPECT_EQ("error: the request body is arriving too slowly", reply.body);
  EXPECT_THAT(reply.head, HasSubstr("Content-Type: text/error\r\n"));
  EXPECT_TRUE(client.Closed());
}

TEST(HttpServer, ClosesSlowClientsButNotOthers) {
  HttpServerOptions options;
  options.header_timeout = options.body_timeout = std::chrono::milliseconds(200);
  options.write_timeout = std::chrono::milliseconds(200);
  const std::string large(size_t{32} << 20, 'x');
  Fixture f(
      [&](HttpExchangePtr e) {
        if (e->head().path() != "/large") return Echo(std::move(e));
        RespondText(std::move(e), large);
      },
      options);
  Client patient(f.port());
  EXPECT_EQ(200, patient.Exchange(Post("x")).status);
  {
    Client head(f.port());
    Client body(f.port());
    Client reader(f.port());
    head.Send("POST / HTTP/1.1\r\nHost: h\r\nX: ");
    body.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
    reader.Send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(head.Closed());
    EXPECT_EQ(408, body.Receive().status);
    EXPECT_TRUE(body.Closed());
    while (f.server->connections() > 1) std::this_thread::yield();
    EXPECT_EQ(0, reader.Receive().status);
  }
  {
    // Another sweep has passed when this one is closed, and must not affect the patient client.
    Client head(f.port());
    head.Send("POST");
    EXPECT_TRUE(head.Closed());
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(200, patient.Exchange(Post("x")).status);
}

TEST(HttpServer, ClosesIdleConnections) {
  HttpServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(1);
  Fixture f(Echo, options);
  Client client(f.port());
  EXPECT_EQ(200, client.Exchange(Post("x")).status);
  EXPECT_TRUE(client.Closed());
}

}  // namespace
}  // namespace nereid::http1
