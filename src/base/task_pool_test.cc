// SPDX-License-Identifier: Apache-2.0
#include "base/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace nereid::base {
namespace {

TEST(TaskPool, RunsAsManyTasksConcurrentlyAsItHasThreads) {
  TaskPool pool("test", 3);
  std::latch all(3);  // each task waits for the others: fewer threads would hang
  for (int i = 0; i < 3; ++i) pool.Post([&] { all.arrive_and_wait(); });
  pool.WaitUntilIdle(base::TimePoint::max());
  EXPECT_TRUE(all.try_wait());
}

TEST(TaskPool, StartsAgainAfterItsThreadsHaveLeft) {
  TaskPool pool("test", 2);
  std::atomic<int> ran{0};
  for (int round = 0; round < 200; ++round) {
    pool.Post([&] { ++ran; });
    pool.WaitUntilIdle(base::TimePoint::max());
  }
  EXPECT_EQ(ran, 200);
}

TEST(TaskPool, FinishesTasksThatItsTasksPosted) {
  std::atomic<int> ran{0};
  {
    TaskPool pool("test", 2);
    for (int i = 0; i < 100; ++i) {
      pool.Post([&] {
        ++ran;
        pool.Post([&] { ++ran; });
      });
    }
  }
  EXPECT_EQ(ran, 200);
}

}  // namespace
}  // namespace nereid::base
