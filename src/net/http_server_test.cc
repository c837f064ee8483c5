// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "base/thread.h"
#include "base/unique_fd.h"

namespace nereid::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

  // One reply; status 0 when the connection ended first.
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

  // Everything until the server closes.
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

class FunctionHandler final : public HttpHandler {
 public:
  using Function = std::function<void(HttpExchangePtr)>;
  explicit FunctionHandler(Function function) : function_(std::move(function)) {}
  size_t BodySplit(const HttpHead& head) override {
    const std::string_view text = head.Header("inference-header-content-length");
    size_t split = kNoSplit;
    std::from_chars(text.data(), text.data() + text.size(), split);
    return split;
  }
  void Handle(HttpExchangePtr exchange) override { function_(std::move(exchange)); }

 private:
  Function function_;
};

void RespondText(HttpExchangePtr exchange, std::string_view text, int status = 200) {
  HttpExchange::Respond(std::move(exchange),
                        {.status = status, .content_type = "text/plain", .text = text});
}

// "METHOD target body"
void Echo(HttpExchangePtr exchange) {
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

  ReactorPool pool;
  FunctionHandler handler;
  std::unique_ptr<HttpServer> server;
};

// A thread that answers exchanges handed to it.
class Worker {
 public:
  explicit Worker(std::function<void(HttpExchangePtr)> answer)
      : answer_(std::move(answer)), thread_("worker", [this] { Run(); }) {}
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
      answer_(std::move(exchange));
    }
  }
  std::function<void(HttpExchangePtr)> answer_;
  base::Mutex mutex_;
  base::CondVar ready_;
  std::deque<HttpExchangePtr> queue_;
  bool stop_ = false;
  base::Thread thread_;
};

std::string Post(std::string_view body, std::string_view headers = "") {
  return "POST /p HTTP/1.1\r\nHost: h\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
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
           (head.HasHeader("X-Two") ? "yes" : "no") + (head.HasHeader("X-Three") ? "yes" : "no") +
           "|" + std::to_string(head.headers().size());
    RespondText(std::move(e), "");
  });
  Client client(f.port());
  EXPECT_EQ(200, client.Exchange("GET /x/y?q=1&r HTTP/1.1\r\nHost: h\r\nX-One:  a b \r\nx-two:\r\n\r\n")
                     .status);
  EXPECT_EQ("/x/y|q=1&r|a b||yesno|3", seen);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Fixture f(Echo);
  Client client(f.port());
  std::string requests;
  for (int i = 0; i < 300; ++i) requests += Post("body " + std::to_string(i));
  client.Send(requests);
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ("POST /p body " + std::to_string(i), client.Receive().body);
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInOrderFromAnotherThread) {
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
  const std::string requests = Post("hello") + "GET / HTTP/1.1\r\n\r\n" +
                               "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n";
  for (const char c : requests) ASSERT_TRUE(client.Send({&c, 1}));
  EXPECT_EQ("POST /p hello", client.Receive().body);
  EXPECT_EQ("GET / ", client.Receive().body);
  EXPECT_EQ("POST /c abcde", client.Receive().body);
}

TEST(HttpServer, PutsTensorBytesOnAnAlignedAddress) {
  std::vector<size_t> misplaced;
  Fixture f([&](HttpExchangePtr e) {
    const size_t split = f.handler.BodySplit(e->head());
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
    // Runs of the same shape are placed by prediction, changes by copying, large ones directly.
    const size_t json = 1 + random() % 90;
    const size_t size = json + (i % 10 == 0 ? random() % 100'000 : 64);
    std::string body(size, 'x');
    for (char& c : body) c = static_cast<char>('a' + random() % 26);
    const std::string header =
        "Inference-Header-Content-Length: " + std::to_string(i % 3 == 0 ? json : 40) + "\r\n";
    if (i % 3 != 0 && size < 40) continue;
    if (i % 7 == 0) {
      std::string chunked = "POST /p HTTP/1.1\r\n" + header + "Transfer-Encoding: chunked\r\n\r\n";
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
  Fixture f([&](HttpExchangePtr e) {
    kept.emplace_back(e->body_buffer(), e->body());
    RespondText(std::move(e), "");
  }, {}, 1);
  Client client(f.port());
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(200, client.Exchange(Post("body " + std::to_string(i))).status);
  }
  for (int i = 0; i < 200; ++i) EXPECT_EQ("body " + std::to_string(i), kept[static_cast<size_t>(i)].second);
}

TEST(HttpServer, SendsContinueBeforeItReadsTheBody) {
  Fixture f(Echo);
  Client client(f.port());
  client.Send("POST /p HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(100, client.Receive(false).status);
  client.Send("hello");
  EXPECT_EQ("POST /p hello", client.Receive().body);
  // The body came along: no interim reply.
  EXPECT_EQ(200, client.Exchange(Post("hello", "Expect: 100-continue\r\n")).status);
  EXPECT_EQ(417, client.Exchange(Post("hello", "Expect: more\r\n")).status);
}

TEST(HttpServer, AnswersHeadWithoutABody) {
  Fixture f(Echo);
  Client client(f.port());
  client.Send("HEAD /h HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.Receive(false).head, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_EQ("GET / ", client.Exchange("GET / HTTP/1.1\r\n\r\n").body);
}

TEST(HttpServer, ClosesWhenAsked) {
  Fixture f(Echo);
  Client client(f.port());
  const auto reply = client.Exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
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

TEST(HttpServer, TakesExactlyTheAllowedNumberOfChunks) {
  Fixture f([](HttpExchangePtr e) {
    RespondText(std::move(e), std::to_string(e->body().size()));
  });
  const std::string head = "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string chunks;
  for (int i = 0; i < 65'536; ++i) chunks += "1\r\nA\r\n";
  Client client(f.port());
  EXPECT_EQ("65536", client.Exchange(head + chunks + "0\r\n\r\n").body);
  const auto reply = client.Exchange(head + chunks + "1\r\nA\r\n0\r\n\r\n");
  EXPECT_EQ(400, reply.status);
  EXPECT_EQ(R"({"error":"Chunked request body exceeds maximum of 65536 non-empty chunks. )"
            R"(Send fewer or larger HTTP chunks."})", reply.body);
  EXPECT_TRUE(client.Closed());
}

TEST(HttpServer, RefusesWhatTwoServersCouldReadInTwoWays) {
  const char* const bad[] = {
      "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
      "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nContent-Length: 0x5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
      "GET / HTTP/1.1\nHost: h\n\n",
      "GET / HTTP/1.1\r\nHost: h\n\r\n",
      "GET / HTTP/1.1\r\nX: a\r\n folded\r\n\r\n",
      "GET / HTTP/1.1\r\nX : a\r\n\r\n",
      "GET / HTTP/1.1\r\nno colon\r\n\r\n",
      "GET / HTTP/1.1\r\n: no name\r\n\r\n",
      "GET  / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\n\r\n",
      "\x16\x03\x01\x02\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
  };
  std::atomic<int> handled{0};
  Fixture f([&](HttpExchangePtr e) {
    ++handled;
    Echo(std::move(e));
  });
  for (const char* text : bad) {
    Client client(f.port());
    client.Send(std::string(text) + "GET /smuggled HTTP/1.1\r\n\r\n");
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
    EXPECT_EQ(200, client.Exchange("GET / HTTP/1.1\r\n" + field + "\r\n").status);
    EXPECT_EQ("POST /p ab", client.Exchange(Post("ab", field)).body);
  }
  {
    Client client(f.port());
    client.Send("GET / HTTP/1.1\r\nX-Long: " + std::string(200'000, 'x'));
    EXPECT_EQ(431, client.Receive().status);
  }
  {
    Client client(f.port());
    std::string fields;
    for (int i = 0; i < 200; ++i) fields += "X-" + std::to_string(i) + ": 1\r\n";
    EXPECT_EQ(431, client.Exchange("GET / HTTP/1.1\r\n" + fields + "\r\n").status);
  }
}

TEST(HttpServer, ThrowsAwayOversizeBodiesAndGoesOn) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  Fixture f([](HttpExchangePtr e) {
    RespondText(std::move(e), (e->body_truncated() ? "cut " : "whole ") +
                                  std::to_string(e->body_size()) + " " + std::string(e->body()));
  }, options);
  Client client(f.port());
  EXPECT_EQ("whole 1000 " + std::string(1000, 'x'), client.Exchange(Post(std::string(1000, 'x'))).body);
  EXPECT_EQ("cut 1001 ", client.Exchange(Post(std::string(1001, 'x'))).body);
  EXPECT_EQ("cut 5000000 0123456789",
            client.Exchange(Post("0123456789" + std::string(4'999'990, 'x'),
                                 "Inference-Header-Content-Length: 10\r\n")).body);
  std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) chunked += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_EQ("cut 10000 ", client.Exchange(chunked + "0\r\n\r\n").body);
  EXPECT_EQ("whole 1 y", client.Exchange(Post("y")).body);
}

TEST(HttpServer, DoesNotReadWithoutEnd) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  options.max_discard_bytes = 1000;
  Fixture f([](HttpExchangePtr e) { RespondText(std::move(e), "cut", 400); }, options);
  Client client(f.port());
  client.Send("POST / HTTP/1.1\r\nContent-Length: 9000000000000000000\r\n\r\n");
  const auto reply = client.Receive();
  EXPECT_EQ(400, reply.status);
  EXPECT_THAT(reply.head, HasSubstr("Connection: close"));
  Client chunks(f.port());
  std::string text = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
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
    client.Send("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(static_cast<size_t>(i) * 500, 'x'));
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

TEST(HttpServer, EchoesLargeBodies) {
  HttpServerOptions options;
  Fixture f([](HttpExchangePtr e) {
    HttpBodyPart part{e->body().data(), e->body().size(), e->body_buffer()};
    HttpExchange::Respond(std::move(e), {.parts = {&part, 1}});
  }, options);
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
    for (const std::string& piece : owner->pieces) parts.push_back({piece.data(), piece.size(), {}});
    HttpExchange::Respond(std::move(e), {.text = "head;", .parts = parts, .owner = owner});
  });
  Client client(f.port());
  std::string expected = "head;";
  for (int i = 0; i < 200; ++i) expected += "piece " + std::to_string(i) + ";";
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(expected, client.Exchange("GET / HTTP/1.1\r\n\r\n").body);
  }
  f.server.reset();
  EXPECT_EQ(20, sent.load());
}

TEST(HttpServer, AnswersFromAnotherThreadUnderLoad) {
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

TEST(HttpServer, AnswersAfterARoundOnTheSameReactor) {
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
  Fixture f([&](HttpExchangePtr e) {
    Reactor& reactor = e->reactor();
    ASSERT_TRUE(reactor.IsCurrent());
    if (batcher.waiting.empty()) reactor.RunAfterRound([&batcher] { batcher.Run(); });
    batcher.waiting.push_back(std::move(e));
  }, {}, 1);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&f, c] {
      Client client(f.port());
      for (int i = 0; i < 300; ++i) {
        const std::string body = std::to_string(c * 1000 + i);
        // Two at a time, so that one waits in the buffer while the other is answered.
        client.Send(Post(body + "a") + Post(body + "b"));
        ASSERT_EQ("POST /p " + body + "a", client.Receive().body);
        ASSERT_EQ("POST /p " + body + "b", client.Receive().body);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GE(batcher.largest, 1u);
}

struct Listening final : HttpExchangeEvents {
  void OnDisconnect() override {
    base::MutexLock lock(mutex);
    gone = true;
    changed.NotifyAll();
  }
  void Wait() {
    base::MutexLock lock(mutex);
    while (!gone) changed.Wait(mutex);
  }
  base::Mutex mutex;
  base::CondVar changed;
  bool gone = false;
};

TEST(HttpServer, TellsWhenTheClientGoesAwayBeforeTheReply) {
  for (const bool reset : {false, true}) {
    Listening events;
    base::Mutex mutex;
    base::CondVar arrived;
    HttpExchangePtr held;
    Fixture f([&](HttpExchangePtr e) {
      e->SetEvents(&events);
      base::MutexLock lock(mutex);
      held = std::move(e);
      arrived.NotifyAll();
    });
    Client client(f.port());
    client.Send(Post("x"));
    {
      base::MutexLock lock(mutex);
      while (!held) arrived.Wait(mutex);
    }
    if (reset) {
      client.Reset();
    } else {
      client.Close();
    }
    events.Wait();
    EXPECT_TRUE(held->disconnected());
    RespondText(std::move(held), "nobody reads this");
    EXPECT_TRUE(f.server->Drain(base::TimePoint::max()));
  }
}

TEST(HttpServer, LetsTheDisconnectCallAnswer) {
  struct Answering final : HttpExchangeEvents {
    HttpExchangePtr held;
    std::atomic<bool> called{false};
    void OnDisconnect() override {
      RespondText(std::move(held), "late");
      called = true;
    }
  };
  Answering events;
  std::atomic<bool> handled{false};
  Fixture f([&](HttpExchangePtr e) {
    HttpExchange& exchange = *e;
    events.held = std::move(e);
    exchange.SetEvents(&events);
    handled = true;
  });
  {
    Client client(f.port());
    client.Send(Post("x") + Post("y"));
    while (!handled) std::this_thread::yield();
  }
  // The second request's bytes stand in the way of seeing the end until the server is told to stop.
  f.server.reset();
  EXPECT_TRUE(events.called.load());
}

TEST(HttpServer, NeverCallsAListenerAfterTheReply) {
  // The listener dies right after Respond: the address sanitizer sees a call that comes too late.
  Worker worker([](HttpExchangePtr e) {
    auto events = std::make_unique<Listening>();
    e->SetEvents(events.get());
    Echo(std::move(e));
  });
  Fixture f([&](HttpExchangePtr e) { worker.Add(std::move(e)); });
  for (int i = 0; i < 300; ++i) {
    Client client(f.port());
    client.Send(Post("x"));
    if (i % 3 == 0) client.Reset();
  }
  EXPECT_TRUE(f.server->Drain(base::TimePoint::max()));
}

TEST(HttpServer, AnswersExchangesThatAreDropped) {
  Fixture f([](HttpExchangePtr e) { e.reset(); });
  Client client(f.port());
  EXPECT_EQ(500, client.Exchange(Post("x")).status);
  EXPECT_TRUE(client.Closed());
}

TEST(HttpServer, KeepsUserStateWithTheConnection) {
  struct Counter final : HttpUserState {
    int count = 0;
  };
  Fixture f([](HttpExchangePtr e) {
    if (e->user_state() == nullptr) e->set_user_state(std::make_unique<Counter>());
    const int count = ++static_cast<Counter*>(e->user_state())->count;
    RespondText(std::move(e), std::to_string(count));
  });
  Client client(f.port());
  EXPECT_EQ("1", client.Exchange(Post("x")).body);
  EXPECT_EQ("2", client.Exchange(Post("x")).body);
  Client other(f.port());
  EXPECT_EQ("1", other.Exchange(Post("x")).body);
}

TEST(HttpServer, DrainFinishesBusyRequestsAndClosesIdleConnections) {
  base::Mutex mutex;
  base::CondVar arrived;
  HttpExchangePtr held;
  Fixture f([&](HttpExchangePtr e) {
    if (e->head().path() == "/quick") return Echo(std::move(e));
    base::MutexLock lock(mutex);
    held = std::move(e);
    arrived.NotifyAll();
  });
  Client idle(f.port());
  EXPECT_EQ(200, idle.Exchange("GET /quick HTTP/1.1\r\n\r\n").status);
  Client busy(f.port());
  busy.Send(Post("x"));
  {
    base::MutexLock lock(mutex);
    while (!held) arrived.Wait(mutex);
  }
  bool clean = false;
  std::thread drain([&] { clean = f.server->Drain(base::TimePoint::max()); });
  EXPECT_TRUE(idle.Closed());
  Echo(std::move(held));
  const auto reply = busy.Receive();
  EXPECT_EQ("POST /p x", reply.body);
  EXPECT_THAT(reply.head, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(busy.Closed());
  busy.Close();
  drain.join();
  EXPECT_TRUE(clean);
  EXPECT_EQ(0u, f.server->connections());
}

TEST(HttpServer, DrainClosesWhatIsLeftAtTheDeadline) {
  base::Mutex mutex;
  base::CondVar arrived;
  HttpExchangePtr held;
  Fixture f([&](HttpExchangePtr e) {
    base::MutexLock lock(mutex);
    held = std::move(e);
    arrived.NotifyAll();
  });
  Client busy(f.port());
  busy.Send(Post("x"));
  {
    base::MutexLock lock(mutex);
    while (!held) arrived.Wait(mutex);
  }
  EXPECT_FALSE(f.server->Drain(base::TimePoint::min()));
  EXPECT_TRUE(busy.Closed());
  RespondText(std::move(held), "too late");
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
  ReactorPool pool(1);
  HttpServerOptions options;
  options.listener = {.address = "127.0.0.1", .port = 0, .reuse_port = true};
  auto first = HttpServer::Start(options, pool, handler);
  ASSERT_TRUE(first.ok());
  options.listener.port = (*first)->port();
  EXPECT_TRUE(HttpServer::Start(options, pool, handler).ok());
}

TEST(HttpServer, StreamsChunks) {
  Worker worker([](HttpExchangePtr e) {
    e->StartStream({.content_type = "text/event-stream"});
    for (int i = 0; i < 5; ++i) e->WriteChunk("event " + std::to_string(i) + "\n");
    HttpExchange::EndStream(std::move(e));
  });
  Fixture f([&](HttpExchangePtr e) {
    if (e->head().path() == "/inline") {
      e->StartStream({});
      e->WriteChunk("abc");
      return HttpExchange::EndStream(std::move(e));
    }
    worker.Add(std::move(e));
  });
  Client client(f.port());
  for (int round = 0; round < 100; ++round) {
    const char* path = round % 2 == 0 ? "/" : "/inline";
    client.Send("GET " + std::string(path) + " HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.Receive(false).head, HasSubstr("Transfer-Encoding: chunked\r\n"));
    const std::string expected =
        round % 2 != 0 ? "3\r\nabc\r\n0\r\n\r\n"
                       : "8\r\nevent 0\n\r\n8\r\nevent 1\n\r\n8\r\nevent 2\n\r\n8\r\nevent 3\n\r\n"
                         "8\r\nevent 4\n\r\n0\r\n\r\n";
    ASSERT_EQ(expected, client.ReceiveBytes(expected.size()));
  }
  Client old(f.port());
  old.Send("GET / HTTP/1.0\r\n\r\n");
  const std::string all = old.ReceiveAll();
  EXPECT_THAT(all, HasSubstr("\r\n\r\nevent 0\nevent 1\nevent 2\nevent 3\nevent 4\n"));
}

TEST(HttpServer, PausesAStreamWhoseClientDoesNotRead) {
  struct Producer final : HttpExchangeEvents {
    HttpExchangePtr exchange;
    int left = 400;
    int pauses = 0;
    base::Mutex mutex;
    base::CondVar changed;
    bool writable = false;
    bool gone = false;
    void OnStreamWritable() override {
      base::MutexLock lock(mutex);
      writable = true;
      changed.NotifyAll();
    }
    void OnDisconnect() override {
      base::MutexLock lock(mutex);
      gone = true;
      changed.NotifyAll();
    }
    void Run() {
      exchange->SetEvents(this);
      exchange->StartStream({});
      while (left-- > 0) {
        {
          base::MutexLock lock(mutex);
          writable = false;
        }
        if (exchange->WriteChunk(std::string(100'000, 'x'))) continue;
        ++pauses;
        base::MutexLock lock(mutex);
        while (!writable && !gone) changed.Wait(mutex);
      }
      HttpExchange::EndStream(std::move(exchange));
    }
  };
  Producer producer;
  base::Thread thread;
  Fixture f([&](HttpExchangePtr e) {
    producer.exchange = std::move(e);
    thread = base::Thread("producer", [&] { producer.Run(); });
  });
  Client client(f.port());
  client.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string all = client.ReceiveAll();
  EXPECT_THAT(all.substr(all.size() - 5), "0\r\n\r\n");
  EXPECT_GT(all.size(), 40'000'000u);
  thread.Join();
}

TEST(HttpServer, SurvivesMutatedHeads) {
  Fixture f(Echo);
  const std::string seeds[] = {
      Post("hello", "Inference-Header-Content-Length: 2\r\n"),
      "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: t\r\n\r\n",
      "GET /v2/models/m/versions/1?x=%20 HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n",
  };
  const char specials[] = "\r\n \t:;,\0/?%0159af";
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text = seeds[random() % 3];
    for (unsigned m = 1 + random() % 4; m > 0; --m) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = specials[random() % (sizeof specials - 1)]; break;
        case 1: text[at] = static_cast<char>(random()); break;
        case 2: text.erase(at, 1 + random() % 4); break;
        default: text.insert(at, 1, specials[random() % (sizeof specials - 1)]); break;
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

TEST(HttpServer, ClosesSlowClientsButNotOthers) {
  HttpServerOptions options;
  options.header_timeout = options.body_timeout = std::chrono::milliseconds(1);
  options.write_timeout = std::chrono::milliseconds(1);
  options.buffer_timeout = std::chrono::milliseconds(1);
  const std::string large(size_t{32} << 20, 'x');
  Fixture f([&](HttpExchangePtr e) {
    if (e->head().path() != "/large") return Echo(std::move(e));
    RespondText(std::move(e), large);
  }, options);
  Client patient(f.port());
  EXPECT_EQ(200, patient.Exchange(Post("x")).status);
  {
    Client head(f.port());
    Client body(f.port());
    Client reader(f.port());
    head.Send("POST / HTTP/1.1\r\nX: ");
    body.Send("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\nabc");
    reader.Send("GET /large HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(head.Closed());
    EXPECT_TRUE(body.Closed());
    while (f.server->connections() > 1) std::this_thread::yield();
    EXPECT_EQ(0, reader.Receive().status);
  }
  {
    // Another sweep has passed when this one is closed: the patient client's buffer is gone by now.
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

TEST(HttpServer, ManyConnectionsComeAndGo) {
  Fixture f(Echo);
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 200; ++i) clients.push_back(std::make_unique<Client>(f.port()));
    for (auto& client : clients) client->Send(Post("x"));
    for (auto& client : clients) ASSERT_EQ(200, client->Receive().status);
  }
}

}  // namespace
}  // namespace nereid::net
