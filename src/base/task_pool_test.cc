// SPDX-License-Identifier: Apache-2.0
#include "base/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <set>
#include <system_error>
#include <thread>

#include "base/testing/no_more_threads.h"

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

TEST(TaskPool, AThreadThatRestsRunsTheNextTask) {
  TaskPool pool("test", 4, std::chrono::hours(1));
  std::set<std::thread::id> threads;
  for (int round = 0; round < 200; ++round) {
    pool.Post([&] { threads.insert(std::this_thread::get_id()); });
    EXPECT_TRUE(pool.WaitUntilIdle(base::TimePoint::max()));
  }
  EXPECT_EQ(threads.size(), 1u);
}

TEST(TaskPool, RunsTasksConcurrentlyThoughSomeThreadsRest) {
  TaskPool pool("test", 4, std::chrono::hours(1));
  for (int round = 0; round < 100; ++round) {
    std::latch all(4);
    for (int i = 0; i < 4; ++i) pool.Post([&] { all.arrive_and_wait(); });
    EXPECT_TRUE(pool.WaitUntilIdle(base::TimePoint::max()));
  }
}

TEST(TaskPool, AThreadThatWorksRunsTheTaskForWhichNoneCanBeStarted) {
  TaskPool pool("test", 2);
  std::latch go(1);
  bool ran = false;
  pool.Post([&] { go.wait(); });
  {
    const NoMoreThreads limit;
    pool.Post([&] { ran = true; });
  }
  go.count_down();
  EXPECT_TRUE(pool.WaitUntilIdle(base::TimePoint::max()));
  EXPECT_TRUE(ran);
  TaskPool without_threads("test", 1);
  const NoMoreThreads limit;
  EXPECT_THROW(without_threads.Post([] {}), std::system_error);
}

}  // namespace
}  // namespace nereid::base
