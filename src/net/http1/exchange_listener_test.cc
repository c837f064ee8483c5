// SPDX-License-Identifier: Apache-2.0
#include "http1/exchange_listener.h"

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

// Counts its calls, and in each does what the test says.
struct Listener final : HttpExchangeEvents {
  void OnDisconnect() override {
    ++disconnects;
    if (in_call) in_call();
  }
  void OnStreamWritable() override {
    ++resumes;
    if (in_call) in_call();
  }
  int disconnects = 0;
  int resumes = 0;
  std::function<void()> in_call;
};

TEST(ExchangeListener, IsNotifiedOnceOfADisconnect) {
  ExchangeListener exchange;
  Listener listener;
  exchange.Set(listener);
  EXPECT_FALSE(exchange.disconnected());
  exchange.Disconnect();
  exchange.Disconnect();
  EXPECT_TRUE(exchange.disconnected());
  EXPECT_EQ(1, listener.disconnects);
}

TEST(ExchangeListener, IsNotifiedFromInsideSetOfAnEarlierDisconnect) {
  ExchangeListener exchange;
  exchange.Disconnect();
  Listener listener;
  exchange.Set(listener);
  EXPECT_EQ(1, listener.disconnects);
}

TEST(ExchangeListener, IsNotifiedOfEveryStreamThatMayContinue) {
  ExchangeListener exchange;
  Listener listener;
  exchange.ResumeStream();
  exchange.Set(listener);
  exchange.ResumeStream();
  exchange.ResumeStream();
  EXPECT_EQ(2, listener.resumes);
  exchange.Disconnect();
  EXPECT_EQ(1, listener.disconnects);
  exchange.ResumeStream();
  EXPECT_EQ(2, listener.resumes);
}

TEST(ExchangeListener, IsNotNotifiedOnceItIsCleared) {
  ExchangeListener exchange;
  Listener listener;
  exchange.Set(listener);
  exchange.Clear();
  exchange.ResumeStream();
  exchange.Disconnect();
  EXPECT_EQ(0, listener.resumes + listener.disconnects);
}

TEST(ExchangeListener, TheLastOneSetIsTheOnlyOne) {
  ExchangeListener exchange;
  Listener first;
  Listener second;
  exchange.Set(first);
  exchange.Set(second);
  exchange.Disconnect();
  EXPECT_EQ(0, first.disconnects);
  EXPECT_EQ(1, second.disconnects);
}

TEST(ExchangeListener, MayBeClearedFromInsideItsCall) {
  ExchangeListener exchange;
  Listener listener;
  listener.in_call = [&] { exchange.Clear(); };
  exchange.Set(listener);
  exchange.ResumeStream();
  exchange.ResumeStream();
  EXPECT_EQ(1, listener.resumes);
}

TEST(ExchangeListener, MaySetAnotherFromInsideItsCall) {
  ExchangeListener exchange;
  Listener first;
  Listener second;
  first.in_call = [&] { exchange.Set(second); };
  exchange.Set(first);
  exchange.ResumeStream();
  exchange.ResumeStream();
  EXPECT_EQ(1, first.resumes);
  EXPECT_EQ(1, second.resumes);
}

TEST(ExchangeListener, AnotherSetFromInsideTheDisconnectCallIsNotifiedToo) {
  ExchangeListener exchange;
  Listener first;
  Listener second;
  first.in_call = [&] { exchange.Set(second); };
  exchange.Set(first);
  exchange.Disconnect();
  EXPECT_EQ(1, first.disconnects);
  EXPECT_EQ(1, second.disconnects);
}

TEST(ExchangeListener, TheNextExchangeOfAConnectionIsNotDisconnected) {
  ExchangeListener exchange;
  exchange.Disconnect();
  exchange.Reset();
  Listener listener;
  exchange.Set(listener);
  EXPECT_EQ(0, listener.disconnects);
  EXPECT_FALSE(exchange.disconnected());
}

TEST(ExchangeListener, ClearOfAnotherThreadReturnsAfterTheCall) {
  ExchangeListener exchange;
  Listener listener;
  std::latch in_call(1);
  std::latch clearing(1);
  std::atomic<bool> has_ended{false};
  bool had_ended = false;
  listener.in_call = [&] {
    in_call.count_down();
    clearing.wait();
    // The other thread is at Clear, or about to be: this gives it a chance to return too early.
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    has_ended = true;
  };
  exchange.Set(listener);
  std::thread other([&] {
    in_call.wait();
    clearing.count_down();
    exchange.Clear();
    had_ended = has_ended;
  });
  exchange.ResumeStream();
  other.join();
  EXPECT_TRUE(had_ended);
}

TEST(ExchangeListener, IsNotifiedOfADisconnectExactlyOnceWhileItIsSet) {
  // The two threads come in either order: ThreadSanitizer checks everything that they share.
  for (int round = 0; round < 500; ++round) {
    ExchangeListener exchange;
    Listener listener;
    std::latch both(2);
    std::thread other([&] {
      both.arrive_and_wait();
      exchange.Set(listener);
    });
    both.arrive_and_wait();
    exchange.Disconnect();
    other.join();
    exchange.Clear();
    ASSERT_EQ(1, listener.disconnects);
  }
}

}  // namespace
}  // namespace nereid::http1
