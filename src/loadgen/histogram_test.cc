// SPDX-License-Identifier: Apache-2.0
#include "loadgen/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

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

TEST(Histogram, IsNearTheSortedTimesAtEveryQuantile) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> times(15, 3);
  for (int round = 0; round < 50; ++round) {
    Histogram histogram;
    std::vector<double> sorted;
    for (uint64_t i = 1 + random() % 500; i > 0; --i) {
      const auto ns = static_cast<int64_t>(std::min(times(random), 1e13));
      histogram.Add(nanoseconds(ns));
      sorted.push_back(static_cast<double>(ns));
    }
    std::ranges::sort(sorted);
    double last = 0;
    for (const double share : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const double rank = std::ceil(share * static_cast<double>(sorted.size()));
      const double exact = sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
      const double found = histogram.QuantileNs(share);
      EXPECT_NEAR(found, exact, exact * 0.008 + 0.5) << share << " of " << sorted.size();
      EXPECT_GE(found, last);
      last = found;
    }
    EXPECT_LE(last, sorted.back());
  }
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
