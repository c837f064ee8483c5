// SPDX-License-Identifier: Apache-2.0
#include "http2/connection_turn.h"

#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

using Next = ConnectionTurn::Next;

TEST(ConnectionTurn, OneThreadHasTheConnectionAtATime) {
  ConnectionTurn turn;
  EXPECT_TRUE(turn.TryTake());
  EXPECT_FALSE(turn.TryTake());
  EXPECT_EQ(turn.LetGo(), Next::kFree);
  EXPECT_TRUE(turn.TryTake());
}

TEST(ConnectionTurn, NotesThatWereLeftMeanwhileAreFoundBeforeLettingGo) {
  ConnectionTurn turn;
  EXPECT_TRUE(turn.TryTake());
  EXPECT_FALSE(turn.TryTakeForReactor());
  EXPECT_FALSE(turn.TryTakeForOrders());
  EXPECT_EQ(turn.LetGo(), Next::kOrders);
  EXPECT_EQ(turn.LetGo(), Next::kReactor);
  EXPECT_FALSE(turn.TryTake());
  EXPECT_EQ(turn.LetGo(), Next::kFree);
}

TEST(ConnectionTurn, AThreadThatTakesItFindsItsOwnNote) {
  ConnectionTurn turn;
  EXPECT_TRUE(turn.TryTakeForOrders());
  EXPECT_EQ(turn.LetGo(), Next::kOrders);
  EXPECT_EQ(turn.LetGo(), Next::kFree);
  EXPECT_TRUE(turn.TryTakeForReactor());
  EXPECT_EQ(turn.LetGo(), Next::kReactor);
  EXPECT_EQ(turn.LetGo(), Next::kFree);
}

TEST(ConnectionTurn, OrdersMayBeLeftToTheNextHolder) {
  ConnectionTurn turn;
  EXPECT_FALSE(turn.NoteOrders());  // some thread must take it
  EXPECT_TRUE(turn.TryTake());
  EXPECT_EQ(turn.LetGo(), Next::kOrders);
  EXPECT_TRUE(turn.NoteOrders());  // the holder will find them
  EXPECT_EQ(turn.LetGo(), Next::kOrders);
  EXPECT_EQ(turn.LetGo(), Next::kFree);
}

TEST(ConnectionTurn, AHolderCanCallTheReactor) {
  ConnectionTurn turn;
  EXPECT_TRUE(turn.TryTake());
  turn.CallReactor();
  EXPECT_EQ(turn.LetGo(), Next::kReactor);
  EXPECT_EQ(turn.LetGo(), Next::kFree);
}

TEST(ConnectionTurn, NoOrderOfAnyThreadIsMissed) {
  ConnectionTurn turn;
  constexpr int kThreads = 4, kOrders = 2000;
  std::atomic<int> ordered{0};
  int served = 0;  // by the thread that has the connection
  std::latch all(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      all.arrive_and_wait();
      for (int order = 0; order < kOrders; ++order) {
        ++ordered;
        if (!turn.TryTakeForOrders()) continue;
        while (turn.LetGo() == Next::kOrders) served += ordered.exchange(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, kThreads * kOrders);
}

}  // namespace
}  // namespace nereid::http2
