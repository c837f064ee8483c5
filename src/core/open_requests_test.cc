// SPDX-License-Identifier: Apache-2.0
#include "core/open_requests.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread.h"

namespace nereid::core {
namespace {

class Counter final : public OpenRequests::Watcher {
 public:
  void OnNoneOpen() override { ++told; }
  std::atomic<int> told{0};
};

TEST(OpenRequests, TellNobodyBeforeTheyAreWatched) {
  Counter counter;
  OpenRequests open(counter);
  EXPECT_TRUE(open.empty());
  open.Add(2);
  open.Remove();
  EXPECT_FALSE(open.empty());
  open.Remove();
  EXPECT_TRUE(open.empty());
  open.Watch();
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(counter.told, 0);
}

TEST(OpenRequests, TellEachTimeWhenNoneIsLeft) {
  Counter counter;
  OpenRequests open(counter);
  open.Add(2);
  open.Watch();
  open.Remove();
  EXPECT_EQ(counter.told, 0);
  EXPECT_FALSE(open.empty());
  open.Remove();
  EXPECT_EQ(counter.told, 1);
  EXPECT_TRUE(open.empty());
  open.Add(1);
  open.Remove();
  EXPECT_EQ(counter.told, 2);
}

TEST(OpenRequests, MayBeDestroyedByWhoSeesThatNoneIsLeft) {
  constexpr uint32_t kThreads = 3;
  constexpr uint32_t kEach = 20;
  for (int round = 0; round < 200; ++round) {
    Counter counter;
    auto open = std::make_unique<OpenRequests>(counter);
    open->Add(kThreads * kEach);
    std::vector<base::Thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back("ends", [&ended = *open] {
        for (uint32_t one = 0; one < kEach; ++one) ended.Remove();
      });
    }
    open->Watch();
    const bool was_empty = open->empty();
    while (!open->empty()) std::this_thread::yield();
    open.reset();
    threads.clear();
    if (!was_empty) {
      EXPECT_EQ(counter.told, 1);
    }
    EXPECT_LE(counter.told, 1);
  }
}

}  // namespace
}  // namespace nereid::core
