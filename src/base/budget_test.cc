// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/buffer_budget.h"
#include "base/platform.h"

namespace nereid::base {
namespace {

TEST(Budget, RefusesAndCountsWhatDoesNotFit) {
  Budget budget(10);
  EXPECT_TRUE(budget.TryTake(7));
  EXPECT_FALSE(budget.TryTake(4));
  EXPECT_TRUE(budget.TryTake(3));
  EXPECT_EQ(budget.used(), 10u);
  EXPECT_EQ(budget.refusals(), 1u);
  budget.Give(10);
  EXPECT_TRUE(budget.TryTake(10));
}

TEST(Budget, RefusesAmountsThatWouldOverflow) {
  Budget budget(10);
  EXPECT_TRUE(budget.TryTake(1));
  EXPECT_FALSE(budget.TryTake(UINT64_MAX));
  EXPECT_EQ(budget.used(), 1u);
}

TEST(Budget, IsScarceWhenThreeQuartersAreUsed) {
  Budget budget(100);
  EXPECT_TRUE(budget.TryTake(75));
  EXPECT_FALSE(budget.is_scarce());
  EXPECT_TRUE(budget.TryTake(1));
  EXPECT_TRUE(budget.is_scarce());
  EXPECT_FALSE(Budget().is_scarce());
}

TEST(BudgetGrant, GivesBackWhatItHoldsAtItsEnd) {
  Budget budget(10);
  {
    BudgetGrant grant;
    EXPECT_TRUE(grant.Resize(budget, 8));
    EXPECT_FALSE(grant.Resize(budget, 11));
    EXPECT_EQ(grant.amount(), 8u);
    EXPECT_TRUE(grant.Resize(budget, 3));
    EXPECT_EQ(budget.used(), 3u);
    const BudgetGrant moved = std::move(grant);
    EXPECT_EQ(moved.amount(), 3u);
    EXPECT_EQ(budget.used(), 3u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(UnitBudget, HasExactlyItsLimit) {
  for (const uint64_t limit : {0u, 1u, 5u, 1000u, 100'000u}) {
    UnitBudget budget(limit);
    uint64_t taken = 0;
    while (budget.TryTake()) ++taken;
    EXPECT_EQ(taken, limit);
    EXPECT_EQ(budget.used(), limit);
    EXPECT_EQ(budget.refusals(), 1u);
    for (; taken > 0; --taken) budget.Give();
    EXPECT_EQ(budget.used(), 0u);
  }
}

TEST(UnitBudget, GrantsUnitsThatOtherThreadsGaveBack) {
  UnitBudget budget(100);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(budget.TryTake());
  ASSERT_FALSE(budget.TryTake());
  std::thread([&] {
    for (int i = 0; i < 100; ++i) budget.Give();
  }).join();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(budget.TryTake());
  EXPECT_FALSE(budget.TryTake());
}

TEST(UnitBudget, NeverGrantsMoreThanItsLimitToManyThreads) {
  constexpr int kLimit = 300;
  UnitBudget budget(kLimit);
  std::atomic<int> out{0};
  std::atomic<bool> was_exceeded{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      int mine = 0;
      for (int i = 0; i < 20'000; ++i) {
        if (i % 64 < 40 && budget.TryTake()) {
          ++mine;
          if (out.fetch_add(1) >= kLimit) was_exceeded = true;
        } else if (mine > 0) {
          --mine;
          out.fetch_sub(1);
          budget.Give();
        }
      }
      for (; mine > 0; --mine) {
        out.fetch_sub(1);
        budget.Give();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(was_exceeded);
  EXPECT_EQ(budget.used(), 0u);
  int left = 0;
  while (budget.TryTake()) ++left;
  EXPECT_EQ(left, kLimit);
}

// One thread has both units at hand when both threads want one.
TEST(UnitBudget, MissesNoUnitThatAnotherThreadIsMoving) {
  UnitBudget budget(2);
  std::atomic<int> arrivals{0};
  std::atomic<int> refused{0};
  const auto meet = [&](int number) {
    arrivals.fetch_add(1);
    for (int i = 1; arrivals.load() < 2 * number; ++i) {
      if (i % 10'000 == 0) std::this_thread::yield();
    }
  };
  const auto take = [&](bool gives_back) {
    int meetings = 0;
    for (int i = 0; i < 20'000; ++i) {
      meet(++meetings);
      // The other thread has the longer way to a unit.
      for (int pause = gives_back ? i % 100 : 0; pause > 0; --pause) arrivals.load();
      while (!budget.TryTake()) refused.fetch_add(1);
      meet(++meetings);
      if (!gives_back) continue;
      budget.Give();
      budget.Give();
    }
  };
  std::thread other([&] { take(false); });
  std::thread([&] { take(true); }).join();
  other.join();
  EXPECT_EQ(refused.load(), 0);
}

TEST(UnitGrant, IsEmptyAfterARefusal) {
  UnitBudget budget(1);
  {
    UnitGrant first;
    UnitGrant second;
    EXPECT_TRUE(first.Take(budget));
    EXPECT_FALSE(second.Take(budget));
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(BufferCharge, GrowsWithTheBytesThatArriveAndEndsWithTheBuffer) {
  Budget budget(size_t{1} << 20);
  {
    const BufferRef buffer = AcquireArrivalBuffer(size_t{60} << 20);
    ASSERT_TRUE(buffer);
    EXPECT_TRUE(ChargeBuffer(buffer, budget, 1));
    EXPECT_EQ(budget.used(), 4096u);
    EXPECT_TRUE(ChargeBuffer(buffer, budget, 100'000));
    EXPECT_GE(budget.used(), 100'000u);
    EXPECT_LE(budget.used(), 200'000u);
    const BufferRef copy = buffer;
    EXPECT_FALSE(ChargeBuffer(buffer, budget, size_t{2} << 20));
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(BufferCharge, CountsAllOfABufferWhoseMemoryWasInUseBefore) {
  constexpr size_t kSize = size_t{33} << 20;
  Budget budget;
  AcquireArrivalBuffer(kSize).Reset();
  const BufferRef again = AcquireArrivalBuffer(kSize);
  EXPECT_TRUE(ChargeBuffer(again, budget, 1));
  EXPECT_GE(budget.used(), kSize);
}

TEST(BufferCharge, LargeBuffersLeaveMappingsToTheRestOfTheProcess) {
  if (kHasAddressSanitizer) GTEST_SKIP() << "its buffers are not mappings";
  // ThreadSanitizer maps memory for each mapping here, and ends the process when there are too
  // many.
  if (kHasThreadSanitizer) GTEST_SKIP() << "its memory takes mappings, too";
  std::vector<BufferRef> buffers;
  while (buffers.size() < 20'000) {
    BufferRef next = AcquireArrivalBuffer(size_t{2} << 20);
    if (!next) break;
    buffers.push_back(std::move(next));
  }
  EXPECT_LE(buffers.size(), 16'384u);
  EXPECT_GT(buffers.size(), 15'000u);
  EXPECT_TRUE(AcquireBuffer(size_t{500} << 10));
  buffers.clear();
  EXPECT_TRUE(AcquireArrivalBuffer(size_t{2} << 20));
}

}  // namespace
}  // namespace nereid::base
