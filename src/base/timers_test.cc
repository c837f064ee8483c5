// SPDX-License-Identifier: Apache-2.0
#include "base/timers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "base/no_wait.h"

namespace nereid::base {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

TEST(Timers, CallBackInTheOrderOfTime) {
  Timers timers;
  std::promise<std::string> done;
  std::string order;
  Timer last(timers, [&] { done.set_value(order + "c"); });
  Timer second(timers, [&] { order += "b"; });
  Timer first(timers, [&] { order += "a"; });
  const uint64_t now = NowNs();
  last.ArmAt(now + 30 * kMillisecond);
  second.ArmAt(now + 20 * kMillisecond);
  first.ArmAt(now);
  EXPECT_EQ(done.get_future().get(), "abc");
}

TEST(Timers, TheirThreadMustNotWait) {
  Timers timers;
  std::promise<bool> done;
  Timer timer(timers, [&] { done.set_value(NoWaitScope::IsHere()); });
  timer.ArmAt(NowNs());
  EXPECT_TRUE(done.get_future().get());
  EXPECT_FALSE(NoWaitScope::IsHere());
}

TEST(Timers, ATimerHasOneTimeAndNoneOnceItIsGone) {
  Timers timers;
  std::atomic<int> calls{0};
  std::promise<void> done;
  Timer moved(timers, [&] { ++calls; });
  auto gone = std::make_unique<Timer>(timers, [&] { calls += 100; });
  Timer end(timers, [&] { done.set_value(); });
  const uint64_t now = NowNs();
  moved.ArmAt(now + 3'600'000 * kMillisecond);
  moved.ArmAt(now + kMillisecond);
  gone->ArmAt(now + 10 * kMillisecond);
  gone.reset();
  end.ArmAt(now + 20 * kMillisecond);
  done.get_future().get();
  EXPECT_EQ(calls, 1);
}

TEST(Timers, ACallbackMayArmItsTimerAgainOrDestroyIt) {
  Timers timers;
  std::promise<void> done;
  int rings = 0;
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(timers, [&] {
    if (++rings < 3) return timer->ArmAt(NowNs());
    std::promise<void>& finished = done;
    timer.reset();
    finished.set_value();
  });
  timer->ArmAt(NowNs());
  done.get_future().get();
  EXPECT_EQ(rings, 3);
}

TEST(Timers, DestroyingATimerWaitsForItsCallback) {
  Timers timers;
  std::promise<void> entered;
  std::atomic<bool> finished{false};
  {
    std::promise<void> leave;
    Timer timer(timers, [&] {
      entered.set_value();
      leave.get_future().wait();
      finished = true;
    });
    timer.ArmAt(NowNs());
    entered.get_future().wait();
    leave.set_value();
  }
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace nereid::base
