// SPDX-License-Identifier: Apache-2.0
#include "base/strand.h"

#include <functional>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread.h"

namespace nereid::base {
namespace {

struct Event : Queueable {
  std::function<void()> body;
};

// A strand whose events are functions.
class Runner {
 public:
  void Run(Event& event) {
    if (!strand.Push(event)) return;
    strand.Drive([](Event& next) { next.body(); });
  }

  Strand<Event> strand;
};

TEST(Strand, HandlesAnEventOnTheThreadThatBringsIt) {
  Runner runner;
  std::thread::id on;
  Event event;
  event.body = [&] { on = std::this_thread::get_id(); };
  runner.Run(event);
  EXPECT_EQ(std::this_thread::get_id(), on);
}

TEST(Strand, HandlesAnEventFromWithinAnotherAfterIt) {
  Runner runner;
  std::string order;
  Event inner;
  inner.body = [&] { order += 'c'; };
  Event outer;
  outer.body = [&] {
    order += 'a';
    runner.Run(inner);
    order += 'b';
  };
  runner.Run(outer);
  EXPECT_EQ("abc", order);
}

TEST(Strand, KnowsItsDriver) {
  Runner first;
  Runner second;
  Event inner;
  Event outer;
  inner.body = [&] {
    EXPECT_TRUE(first.strand.IsDriver()) << "further up the stack";
    EXPECT_TRUE(second.strand.IsDriver());
  };
  outer.body = [&] {
    EXPECT_FALSE(second.strand.IsDriver());
    second.Run(inner);
    EXPECT_FALSE(second.strand.IsDriver()) << "it is over";
    Thread("other", [&] { EXPECT_FALSE(first.strand.IsDriver()); }).Join();
  };
  first.Run(outer);
  EXPECT_FALSE(first.strand.IsDriver());
}

TEST(Strand, LeavesEventsToTheThreadThatDrives) {
  Runner runner;
  std::latch is_driving(1);
  std::latch is_left(1);
  std::thread::id first_on;
  std::thread::id second_on;
  Event first;
  first.body = [&] {
    is_driving.count_down();
    is_left.wait();
    first_on = std::this_thread::get_id();
  };
  Event second;
  second.body = [&] { second_on = std::this_thread::get_id(); };
  Thread driver("driver", [&] { runner.Run(first); });
  is_driving.wait();
  runner.Run(second);  // returns, although the first event is not over
  is_left.count_down();
  driver.Join();
  EXPECT_EQ(first_on, second_on);
}

TEST(Strand, HandlesTheOtherEventsIfOneOfThemFails) {
  Runner runner;
  std::string order;
  Event second;
  second.body = [&] {
    order += 'b';
    throw std::runtime_error("second");
  };
  Event third;
  third.body = [&] { order += 'c'; };
  Event first;
  first.body = [&] {
    order += 'a';
    runner.Run(second);
    runner.Run(third);
    throw std::runtime_error("first");
  };
  try {
    runner.Run(first);
    ADD_FAILURE() << "nobody learns of the failure";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ("first", error.what());
  }
  EXPECT_EQ("abc", order);
  EXPECT_FALSE(runner.strand.IsDriver());
  Event later;
  later.body = [&] { order += 'd'; };
  runner.Run(later);
  EXPECT_EQ("abcd", order) << "the strand has rested";
}

TEST(Strand, HandlesEventsOfManyThreadsOneAtATimeAndInOrder) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  Runner runner;
  std::vector<std::vector<int>> seen(kThreads);  // both without a lock: events of one strand
  int total = 0;
  std::vector<Event> events(size_t{kThreads} * kEach);
  std::latch start(kThreads);
  std::vector<Thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back("brings", [&, thread] {
      start.arrive_and_wait();
      for (int i = 0; i < kEach; ++i) {
        Event& event = events[static_cast<size_t>(thread) * kEach + static_cast<size_t>(i)];
        event.body = [&, thread, i] {
          seen[static_cast<size_t>(thread)].push_back(i);
          ++total;
        };
        runner.Run(event);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(kThreads * kEach, total);
  for (const std::vector<int>& numbers : seen) {
    for (int i = 0; i < kEach; ++i) ASSERT_EQ(i, numbers[static_cast<size_t>(i)]);
  }
}

}  // namespace
}  // namespace nereid::base
