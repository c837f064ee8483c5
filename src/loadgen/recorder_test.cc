// SPDX-License-Identifier: Apache-2.0
#include "loadgen/recorder.h"

#include <chrono>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "loadgen/arrivals.h"

namespace nereid::loadgen {
namespace {

using namespace std::chrono_literals;

base::TimePoint At(base::nanoseconds time) { return base::TimePoint(time + 100s); }

// From second 1 to second 3, in intervals of a second.
Recorder TwoSeconds() { return {At(1s), At(3s), 1s}; }

TEST(Recorder, LeavesOutTheWarmUpAndWhatEndsTooLate) {
  Recorder recorder = TwoSeconds();
  recorder.Succeeded(At(500ms), At(900ms), /*is_open=*/false);
  recorder.Succeeded(At(900ms), At(1100ms), false);
  recorder.Succeeded(At(2900ms), At(3100ms), false);
  ASSERT_EQ(recorder.intervals().size(), 1U);
  EXPECT_EQ(recorder.intervals()[0].succeeded, 1U);
  EXPECT_EQ(recorder.intervals()[0].latencies.max_ns(), 200'000'000U);
}

TEST(Recorder, KeepsLatenciesOfAnOpenLoopThatEndAfterTheMeasurement) {
  Recorder recorder = TwoSeconds();
  recorder.Succeeded(At(2900ms), At(9s), /*is_open=*/true);
  ASSERT_EQ(recorder.intervals().size(), 2U);
  EXPECT_EQ(recorder.intervals()[1].succeeded, 0U);
  EXPECT_EQ(recorder.intervals()[1].latencies.max_ns(), 6'100'000'000U);
}

TEST(Recorder, CountsWhatNeverEndedWithTheTimeThatItHasTaken) {
  Recorder recorder = TwoSeconds();
  recorder.Unfinished(At(1500ms), At(11s));
  recorder.Unfinished(At(3500ms), At(11s));
  EXPECT_EQ(recorder.unfinished(), 1U);
  EXPECT_EQ(recorder.intervals()[0].latencies.max_ns(), 9'500'000'000U);
}

TEST(Recorder, CountsErrorsByTextUpToALimit) {
  Recorder recorder = TwoSeconds();
  for (int i = 0; i < 100; ++i) recorder.Failed(At(1s), At(2s), false, fmt::format("error {}", i));
  recorder.Failed(At(1s), At(2s), false, "error 0");
  EXPECT_EQ(recorder.errors().at("error 0"), 2U);
  EXPECT_EQ(recorder.errors().at("(other errors)"), 80U);
  EXPECT_EQ(recorder.ended(), 101U);
}

TEST(Recorder, AddsWhatOtherThreadsMeasured) {
  Recorder one = TwoSeconds();
  Recorder other = TwoSeconds();
  one.Succeeded(At(1s), At(1100ms), false);
  other.Succeeded(At(1s), At(2100ms), false);
  other.Failed(At(1s), At(2500ms), false, "no");
  one.Add(other);
  ASSERT_EQ(one.intervals().size(), 2U);
  EXPECT_EQ(one.intervals()[0].succeeded, 1U);
  EXPECT_EQ(one.intervals()[1].succeeded, 1U);
  EXPECT_EQ(one.errors().at("no"), 1U);
  EXPECT_EQ(one.last_end(), At(2500ms));
}

TEST(Arrivals, AtAConstantRateDoNotDrift) {
  Arrivals arrivals(Distribution::kConstant, 3, At(0s), 1);
  for (int i = 0; i < 3'000'000; ++i) arrivals.Advance();
  EXPECT_NEAR(std::chrono::duration<double>(arrivals.next() - At(0s)).count(), 1e6, 0.01);
}

TEST(Arrivals, OfIndependentUsersComeInBursts) {
  Arrivals arrivals(Distribution::kPoisson, 1000, At(0s), 1);
  int close = 0;
  for (int i = 0; i < 10'000; ++i) {
    const base::TimePoint before = arrivals.next();
    arrivals.Advance();
    close += arrivals.next() - before < 100us ? 1 : 0;
  }
  // Of exponentially distributed pauses, 1 - exp(-0.1) are shorter than a tenth of the mean.
  EXPECT_NEAR(close, 952, 100);
  EXPECT_NEAR(std::chrono::duration<double>(arrivals.next() - At(0s)).count(), 10, 0.5);
}

}  // namespace
}  // namespace nereid::loadgen
