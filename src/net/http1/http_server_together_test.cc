// SPDX-License-Identifier: Apache-2.0
// Small replies to requests that arrived together must be sent together.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "http1/http_server_fixture.h"

namespace nereid::http1 {
namespace {

// A server with one reactor, and clients that are connected to it.
class Crowd {
 public:
  Crowd(size_t clients, FunctionHandler::Function function)
      : fixture_(
            [function = std::move(function)](HttpExchangePtr e) {
              e->head().target() == "/warm" ? Echo(std::move(e)) : function(std::move(e));
            },
            {}, 1) {
    for (size_t i = 0; i < clients; ++i) {
      clients_.push_back(std::make_unique<Client>(fixture_.port()));
      EXPECT_EQ(200, client(i).Exchange("GET /warm HTTP/1.1\r\nHost: h\r\n\r\n").status);
    }
  }

  Client& client(size_t i) { return *clients_[i]; }
  uint16_t port() const { return fixture_.port(); }

  // Makes the reactor find everything that `send` sends in one pass.
  template <typename Send>
  void Together(Send send) {
    std::latch held(1);
    std::latch sent(1);
    std::latch released(1);
    fixture_.pool.reactor(0).Post([&] {
      held.count_down();
      sent.wait();
      released.count_down();
    });
    held.wait();
    send();
    sent.count_down();
    released.wait();
  }
  void AskTogether(std::string_view request) {
    Together([&] {
      for (const auto& client : clients_) EXPECT_TRUE(client->Send(request));
    });
  }

  // Returns once the reactor has finished its current work, so that its replies can be read.
  void Settle() {
    Together([] {});
  }

  // Returns how many clients have something to read, after waiting for `expected` of them.
  size_t WaitForReplies(size_t expected) const {
    std::vector<pollfd> all;
    for (const auto& client : clients_) all.push_back({client->fd(), POLLIN, 0});
    const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
      const auto replied = static_cast<size_t>(::poll(all.data(), all.size(), 0));
      if (replied >= expected || std::chrono::steady_clock::now() > deadline) return replied;
      std::this_thread::yield();
    }
  }

 private:
  std::vector<std::unique_ptr<Client>> clients_;
  Fixture fixture_;
};

TEST(HttpServerTogether, SixteenRepliesAtMostWaitForEachOther) {
  constexpr size_t kClients = 40;
  std::vector<size_t> replied;  // the count when each request is handled
  std::unique_ptr<Crowd> crowd;
  crowd = std::make_unique<Crowd>(kClients, [&](HttpExchangePtr e) {
    replied.push_back(crowd->WaitForReplies(replied.size() / 16 * 16));
    Echo(std::move(e));
  });
  crowd->AskTogether(Post("body"));
  EXPECT_EQ(kClients, crowd->WaitForReplies(kClients));  // no client reads before
  for (size_t i = 0; i < kClients; ++i) EXPECT_EQ("POST /p body", crowd->client(i).Receive().body);
  crowd->Settle();
  ASSERT_EQ(kClients, replied.size());
  for (size_t i = 0; i < kClients; ++i) EXPECT_EQ(i / 16 * 16, replied[i]) << i;
}

TEST(HttpServerTogether, RepliesOfARoundLeaveAfterIt) {
  std::vector<HttpExchangePtr> round;
  size_t early = 0;
  std::unique_ptr<Crowd> crowd;
  crowd = std::make_unique<Crowd>(20, [&](HttpExchangePtr e) {
    if (round.empty()) {
      e->reactor().RunAfterRound([&] {
        for (HttpExchangePtr& exchange : round) {
          Echo(std::move(exchange));
          early += crowd->WaitForReplies(0);
        }
        round.clear();
      });
    }
    round.push_back(std::move(e));
  });
  crowd->AskTogether(Post("body"));
  EXPECT_EQ(20u, crowd->WaitForReplies(20));
  crowd->Settle();
  EXPECT_EQ(0u, early);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ("POST /p body", crowd->client(i).Receive().body);
}

TEST(HttpServerTogether, PipelinedRequestsGetTheirRepliesInOrder) {
  Crowd crowd(5, Echo);
  crowd.AskTogether(Post("a") + Post("b"));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ("POST /p a", crowd.client(i).Receive().body);
    EXPECT_EQ("POST /p b", crowd.client(i).Receive().body);
  }
}

TEST(HttpServerTogether, ADeferredReplyIsIntactIfTheNextRequestArrivesMeanwhile) {
  HttpExchangePtr held;
  Crowd crowd(2, [&](HttpExchangePtr e) {
    if (e->body() == "hold") {
      held = std::move(e);
      return;
    }
    if (held) Echo(std::move(held));
    Echo(std::move(e));
  });
  crowd.Together([&] { EXPECT_TRUE(crowd.client(0).Send(Post("hold"))); });
  crowd.Settle();
  crowd.Together([&] {
    EXPECT_TRUE(crowd.client(1).Send(Post("go")));
    EXPECT_TRUE(crowd.client(0).Send(Post("next")));
  });
  EXPECT_EQ("POST /p hold", crowd.client(0).Receive().body);
  EXPECT_EQ("POST /p next", crowd.client(0).Receive().body);
  EXPECT_EQ("POST /p go", crowd.client(1).Receive().body);
}

TEST(HttpServerTogether, RepliesOfManyPartsAreWhole) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 100; ++i) pieces.push_back("piece " + std::to_string(i) + ";");
  Crowd crowd(3, [&](HttpExchangePtr e) {
    std::vector<HttpBodyPart> parts;
    for (const std::string& piece : pieces) parts.push_back({piece.data(), piece.size(), {}});
    HttpExchange::Respond(std::move(e), {.text = "head;", .parts = parts});
  });
  crowd.AskTogether(Post("body"));
  std::string expected = "head;";
  for (const std::string& piece : pieces) expected += piece;
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(expected, crowd.client(i).Receive().body);
}

TEST(HttpServerTogether, AClientThatGoesMeanwhileTakesNoOtherReplyWithIt) {
  std::unique_ptr<Crowd> crowd;
  size_t handled = 0;
  crowd = std::make_unique<Crowd>(3, [&](HttpExchangePtr e) {
    if (++handled == 2) {
      // The reply to one of the two is waiting already.
      crowd->client(0).Reset();
      crowd->client(1).Reset();
    }
    Echo(std::move(e));
  });
  crowd->AskTogether(Post("body"));
  EXPECT_EQ("POST /p body", crowd->client(2).Receive().body);
  EXPECT_EQ(200, Client(crowd->port()).Exchange(Post("another")).status);
}

TEST(HttpServerTogether, AReplyThatTheSocketDoesNotTakeWholeIsFinishedLater) {
  std::atomic<size_t> handled{0};
  const std::string padding(3500, 'x');
  Crowd crowd(2, [&](HttpExchangePtr e) {
    if (e->body() == "other") return Echo(std::move(e));
    RespondText(std::move(e), padding + std::to_string(handled.fetch_add(1)));
  });
  Client& reads_late = crowd.client(0);
  size_t asked = 0;
  // Continues until a request is not read, because the reply before it is not sent.
  for (; asked < 20'000 && handled.load() == asked; ++asked) {
    crowd.Together([&] {
      EXPECT_TRUE(reads_late.Send(Post("late")));
      EXPECT_TRUE(crowd.client(1).Send(Post("other")));
    });
    EXPECT_EQ("POST /p other", crowd.client(1).Receive().body);
  }
  EXPECT_LT(asked, 20'000u);
  for (size_t i = 0; i < asked; ++i)
    EXPECT_EQ(padding + std::to_string(i), reads_late.Receive().body);
}

// O-8 of docs/scheduling.md.
TEST(HttpServerTogether, AConnectionWithManyRequestsLeavesOthersTheirTurns) {
  std::vector<std::string> order;  // written on the reactor
  Crowd crowd(2, [&order](HttpExchangePtr e) {
    order.emplace_back(e->head().target());
    Echo(std::move(e));
  });
  constexpr int kMany = 100;
  crowd.Together([&] {
    std::string many;
    for (int i = 0; i < kMany; ++i) many += "GET /many HTTP/1.1\r\nHost: h\r\n\r\n";
    EXPECT_TRUE(crowd.client(0).Send(many));
    EXPECT_TRUE(crowd.client(1).Send("GET /one HTTP/1.1\r\nHost: h\r\n\r\n"));
  });
  EXPECT_EQ(200, crowd.client(1).Receive().status);
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(200, crowd.client(0).Receive().status);
  crowd.Settle();
  ASSERT_EQ(order.size(), static_cast<size_t>(kMany) + 1);
  const auto one = std::ranges::find(order, "/one");
  EXPECT_LE(one - order.begin(), 4);
}

}  // namespace
}  // namespace nereid::http1
