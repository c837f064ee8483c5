// SPDX-License-Identifier: Apache-2.0
// Clients that disconnect, servers that stop, replies that take long.

#include <atomic>
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http1/http_server_fixture.h"

namespace nereid::http1 {
namespace {

using ::testing::HasSubstr;

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

TEST(HttpServer, ReportsADisconnectBeforeTheReply) {
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

// Bytes after the request keep the server from reading, and so from seeing the end.
TEST(HttpServer, ReportsADisconnectAfterFurtherBytes) {
  struct Case {
    std::string more;
    bool comes_later;
    bool resets;
  };
  const Case cases[] = {
      {"\r\n", false, false}, {"\r\n", true, false},    {"\r\n", false, true},
      {"\r\n", true, true},   {Post("y"), false, true}, {Post("y"), true, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("more '{}', later {}, reset {}", c.more, c.comes_later, c.resets));
    Listening events;
    base::Mutex mutex;
    base::CondVar arrived;
    HttpExchangePtr held;
    bool is_second = false;
    Fixture f([&](HttpExchangePtr e) {
      if (std::exchange(is_second, true)) return Echo(std::move(e));
      e->SetEvents(&events);
      base::MutexLock lock(mutex);
      held = std::move(e);
      arrived.NotifyAll();
    });
    Client client(f.port());
    client.Send(c.comes_later ? Post("x") : Post("x") + c.more);
    {
      base::MutexLock lock(mutex);
      while (!held) arrived.Wait(mutex);
    }
    if (c.comes_later) client.Send(c.more);
    if (c.resets) {
      client.Reset();
    } else {
      client.Close();
    }
    events.Wait();
    RespondText(std::move(held), "nobody reads this");
    EXPECT_TRUE(f.server->Drain(base::TimePoint::max()));
  }
}

TEST(HttpServer, LetsTheDisconnectCallRespond) {
  struct Responding final : HttpExchangeEvents {
    HttpExchangePtr held;
    std::atomic<bool> called{false};
    void OnDisconnect() override {
      RespondText(std::move(held), "late");
      called = true;
    }
  };
  Responding events;
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
  // The bytes of the second request hide the end of the stream until the server is told to stop.
  f.server.reset();
  EXPECT_TRUE(events.called.load());
}

TEST(HttpServer, NeverCallsAListenerAfterTheReply) {
  // The listener is destroyed right after Respond, so AddressSanitizer finds a later call.
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

TEST(HttpServer, RespondsToExchangesThatAreDropped) {
  Fixture f([](HttpExchangePtr e) { e.reset(); });
  Client client(f.port());
  EXPECT_EQ(500, client.Exchange(Post("x")).status);
  EXPECT_TRUE(client.Closed());
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
  EXPECT_EQ(200, idle.Exchange("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n").status);
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

TEST(HttpServer, DrainExpectsOneMoreRequestOnAnIdleConnection) {
  HttpServerOptions options;
  options.drain_idle_time = std::chrono::hours(1);
  Fixture f(Echo, options);
  Client client(f.port());
  EXPECT_EQ(200, client.Exchange(Post("x")).status);
  std::jthread drain([&] { EXPECT_TRUE(f.server->Drain(base::TimePoint::max())); });
  Client::Reply reply;
  do {
    reply = client.Exchange(Post("y"));
    EXPECT_EQ(200, reply.status);
  } while (reply.status == 200 && reply.head.find("Connection: close\r\n") == std::string::npos);
  EXPECT_TRUE(client.Closed());
  client.Close();
}

TEST(HttpServer, ConnectionsThatWaitToBeAcceptedAreServedWhenItStops) {
  Fixture f(Echo, {}, 1);
  std::latch is_busy(1);
  std::latch may_go_on(1);
  f.pool.reactor(0).Post([&] {
    is_busy.count_down();
    may_go_on.wait();
  });
  is_busy.wait();
  Client client(f.port());
  client.Send(Post("x"));
  std::jthread drain([&] { EXPECT_TRUE(f.server->Drain(base::TimePoint::max())); });
  may_go_on.count_down();
  EXPECT_EQ(200, client.Receive().status);
  client.Close();
}

TEST(HttpServer, DrainClosesRemainingConnectionsAtTheDeadline) {
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
    client.Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
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
  client.Send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string all = client.ReceiveAll();
  EXPECT_THAT(all.substr(all.size() - 5), "0\r\n\r\n");
  EXPECT_GT(all.size(), 40'000'000u);
  thread.Join();
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
}  // namespace nereid::http1
