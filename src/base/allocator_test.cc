// SPDX-License-Identifier: Apache-2.0
#include "base/allocator.h"

#include <chrono>

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ClockSteps, ATimeThatPassesIsNoStep) {
  ClockSteps steps;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(steps.Look(hours(500'000) + seconds(i), seconds(i)).has_value());
  }
}

TEST(ClockSteps, EachStepIsToldOnceWithItsDirection) {
  ClockSteps steps;
  EXPECT_FALSE(steps.Look(hours(500'000), seconds(7)).has_value());
  EXPECT_EQ(steps.Look(hours(500'001) + seconds(1), seconds(8)), hours(1));
  EXPECT_FALSE(steps.Look(hours(500'001) + seconds(2), seconds(9)).has_value());
  EXPECT_EQ(steps.Look(hours(499'000) + seconds(3), seconds(10)), -hours(1'001));
  EXPECT_FALSE(steps.Look(hours(499'000) + seconds(4), seconds(11)).has_value());
}

TEST(ClockSteps, ACorrectionThatAddsUpIsNoStep) {
  ClockSteps steps;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(steps.Look(hours(500'000) + i * milliseconds(990), seconds(i)).has_value()) << i;
  }
}

}  // namespace
}  // namespace nereid::base
