// SPDX-License-Identifier: Apache-2.0
#include "schedule/thread_shortage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

#include "base/testing/no_more_threads.h"
#include "base/thread.h"
#include "schedule/start_thread.h"

namespace nereid::schedule {
namespace {

TEST(ThreadShortage, LooksAgainUntilThereIsAThread) {
  base::Timers timers;
  std::atomic<int> looks{0};
  std::promise<void> has_thread;
  std::function<void()> look;
  ThreadShortage shortage(timers, "model", [&look] { look(); });
  look = [&] {
    if (++looks < 2) return shortage.Note();
    has_thread.set_value();
  };
  ASSERT_TRUE(shortage.Prepare().ok());
  shortage.Note();
  EXPECT_EQ(has_thread.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_EQ(looks, 2);
}

TEST(ThreadShortage, NeedsNoThreadOnceItIsPrepared) {
  base::Timers timers;
  std::promise<void> looked;
  ThreadShortage shortage(timers, "model", [&looked] { looked.set_value(); });
  {
    const base::NoMoreThreads limit;
    const base::Status status = shortage.Prepare();
    EXPECT_EQ(status.code(), base::StatusCode::kUnavailable) << status.ToString();
  }
  ASSERT_TRUE(shortage.Prepare().ok());
  const base::NoMoreThreads limit;
  EXPECT_FALSE(StartThread("thread", [] {}).ok());
  shortage.Note();
  EXPECT_EQ(looked.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
}

}  // namespace
}  // namespace nereid::schedule
