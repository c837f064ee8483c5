// SPDX-License-Identifier: Apache-2.0
#include "base/periodic_thread.h"

#include <chrono>
#include <future>

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

TEST(PeriodicThread, CallsAtOnceAndItsEndWaitsForNoPause) {
  std::promise<void> called;
  PeriodicThread thread("test", std::chrono::hours(1), [&] { called.set_value(); });
  called.get_future().wait();
}

TEST(PeriodicThread, CallsAgainAndAgain) {
  std::promise<void> called_thrice;
  int calls = 0;
  PeriodicThread thread("test", std::chrono::milliseconds(1), [&] {
    if (++calls == 3) called_thrice.set_value();
  });
  called_thrice.get_future().wait();
}

}  // namespace
}  // namespace nereid::base
