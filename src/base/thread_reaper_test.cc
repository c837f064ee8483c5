// SPDX-License-Identifier: Apache-2.0
#include "base/thread_reaper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <vector>

namespace nereid::base {
namespace {

std::atomic<int> ends{0};

struct CountsItsEnd {
  ~CountsItsEnd() { ++ends; }
  void Touch() {}
};

TEST(ThreadReaper, WaitsForThreadsThatLeft) {
  ThreadReaper reaper;
  constexpr int kThreads = 20;
  for (int i = 1; i <= kThreads; ++i) {
    std::promise<Thread> self;
    std::promise<void> has_left;
    // Shared because the body of a thread must be copyable.
    auto own = std::make_shared<std::future<Thread>>(self.get_future());
    self.set_value(Thread("leaver", [&reaper, &has_left, own] {
      thread_local CountsItsEnd counts;
      counts.Touch();
      reaper.Leave(own->get());
      has_left.set_value();
    }));
    has_left.get_future().wait();
    reaper.WaitForLeft();
    EXPECT_EQ(ends, i);
  }
}

TEST(ThreadReaper, ThreadsThatLeaveJoinThoseBefore) {
  ThreadReaper reaper;
  ends = 0;
  std::vector<std::future<void>> all;
  for (int i = 0; i < 20; ++i) {
    std::promise<Thread> self;
    auto own = std::make_shared<std::future<Thread>>(self.get_future());
    auto has_left = std::make_shared<std::promise<void>>();
    all.push_back(has_left->get_future());
    self.set_value(Thread("leaver", [&reaper, own, has_left] {
      thread_local CountsItsEnd counts;
      counts.Touch();
      reaper.Leave(own->get());
      has_left->set_value();
    }));
  }
  for (std::future<void>& one : all) one.wait();
  EXPECT_GE(ends, 19) << "of all but the last somebody has seen the end";
  reaper.WaitForLeft();
  EXPECT_EQ(ends, 20);
}

}  // namespace
}  // namespace nereid::base
