// SPDX-License-Identifier: Apache-2.0
#include "loadgen/histogram.h"

#include <gtest/gtest.h>

namespace nereid::loadgen {
namespace {

using std::chrono::nanoseconds;

TEST(Histogram, OfNothingHasNoTimes) {
  const Histogram none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.QuantileNs(0.5), 0);
  EXPECT_EQ(none.mean_ns(), 0);
}

TEST(Histogram, IsRightWithinAPercentAtEveryMagnitude) {
  for (int64_t ns = 1; ns < 10'000'000'000'000; ns = ns * 3 + 1) {
    Histogram one;
    one.Add(nanoseconds(ns));
    one.Add(nanoseconds(ns * 10));  // so that the result is not cut at the longest time
    EXPECT_NEAR(one.QuantileNs(0.5), static_cast<double>(ns),
                static_cast<double>(ns) * 0.008 + 0.5);
  }
}

TEST(Histogram, FindsQuantilesOfManyTimes) {
  Histogram times;
  for (int i = 1; i <= 10'000; ++i) times.Add(std::chrono::microseconds(i));
  EXPECT_NEAR(times.QuantileNs(0.5), 5e6, 5e6 * 0.01);
  EXPECT_NEAR(times.QuantileNs(0.99), 9.9e6, 9.9e6 * 0.01);
  EXPECT_EQ(times.QuantileNs(1), 1e7);
  EXPECT_NEAR(times.mean_ns(), 5.0005e6, 1);
  EXPECT_EQ(times.max_ns(), 10'000'000U);
}

TEST(Histogram, AddsAnother) {
  Histogram slow;
  slow.Add(std::chrono::seconds(1));
  Histogram all;
  for (int i = 0; i < 3; ++i) all.Add(nanoseconds(1000));
  all.Add(slow);
  EXPECT_EQ(all.count(), 4U);
  EXPECT_NEAR(all.QuantileNs(0.75), 1000, 8);
  EXPECT_EQ(all.QuantileNs(0.76), 1e9);
}

TEST(Histogram, TakesImpossibleTimesForTheNearestPossibleOnes) {
  Histogram times;
  times.Add(nanoseconds(-5));
  times.Add(std::chrono::hours(1000));
  EXPECT_EQ(times.QuantileNs(0.5), 0);
  EXPECT_GT(times.QuantileNs(1), 4e3 * 3600e9 / 1000 * 0.9);
}

}  // namespace
}  // namespace nereid::loadgen
