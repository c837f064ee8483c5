// SPDX-License-Identifier: Apache-2.0
#include "loadgen/recorder.h"

#include <chrono>
#include <random>

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

TEST(Recorder, MeasuresFromTheFirstInstantUntilJustBeforeTheLast) {
  Recorder recorder = TwoSeconds();
  EXPECT_EQ(recorder.last_end(), At(1s));
  recorder.Succeeded(At(0s), At(1s) - 1ns, false);
  recorder.Succeeded(At(0s), At(3s), false);
  EXPECT_EQ(recorder.ended(), 0U);
  recorder.Succeeded(At(0s), At(1s), false);
  recorder.Succeeded(At(0s), At(3s) - 1ns, false);
  EXPECT_EQ(recorder.ended(), 2U);
  ASSERT_EQ(recorder.intervals().size(), 2U);
  EXPECT_EQ(recorder.intervals()[1].succeeded, 1U);
}

TEST(Recorder, LosesAndInventsNoRequestHoweverThreadsShareThem) {
  std::mt19937 random(1);
  for (const bool is_open : {false, true}) {
    Recorder all = TwoSeconds();
    std::vector<Recorder> threads(4, TwoSeconds());
    for (int i = 0; i < 5000; ++i) {
      const base::TimePoint due = At(std::chrono::milliseconds(random() % 4000));
      const base::TimePoint now = due + std::chrono::milliseconds(random() % 1500);
      Recorder& thread = threads[random() % threads.size()];
      for (Recorder* const recorder : {&all, &thread}) {
        if (i % 10 == 0) {
          recorder->Failed(due, now, is_open, i % 20 == 0 ? "refused" : "lost");
        } else {
          recorder->Succeeded(due, now, is_open);
        }
      }
    }
    Recorder sum = TwoSeconds();
    for (const Recorder& thread : threads) sum.Add(thread);
    EXPECT_EQ(sum.ended(), all.ended());
    EXPECT_EQ(sum.last_end(), all.last_end());
    EXPECT_EQ(sum.errors(), all.errors());
    ASSERT_EQ(sum.intervals().size(), all.intervals().size());
    for (size_t i = 0; i < all.intervals().size(); ++i) {
      EXPECT_EQ(sum.intervals()[i].succeeded, all.intervals()[i].succeeded);
      EXPECT_EQ(sum.intervals()[i].latencies.count(), all.intervals()[i].latencies.count());
      for (const double share : {0.5, 0.99, 1.0}) {
        EXPECT_EQ(sum.intervals()[i].latencies.QuantileNs(share),
                  all.intervals()[i].latencies.QuantileNs(share));
      }
    }
  }
}

TEST(Recorder, KeepsFewTextsHoweverManyThreadsMadeDifferentOnes) {
  Recorder sum = TwoSeconds();
  uint64_t failures = 0;
  for (int thread = 0; thread < 64; ++thread) {
    Recorder one = TwoSeconds();
    for (int i = 0; i < 30; ++i, ++failures) {
      one.Failed(At(1s), At(2s), false, fmt::format("error {} of {}", i, thread));
    }
    sum.Add(one);
  }
  EXPECT_LE(sum.errors().size(), 21U);
  uint64_t counted = 0;
  for (const auto& [text, count] : sum.errors()) counted += count;
  EXPECT_EQ(counted, failures);
}

TEST(Arrivals, OfTheSameSeedAreTheSameAndOfAnotherAreNot) {
  Arrivals one(Distribution::kPoisson, 100, At(0s), 5);
  Arrivals same(Distribution::kPoisson, 100, At(0s), 5);
  Arrivals other(Distribution::kPoisson, 100, At(0s), 6);
  int differing = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(one.next(), same.next());
    differing += one.next() != other.next() ? 1 : 0;
    for (Arrivals* const each : {&one, &same, &other}) each->Advance();
  }
  EXPECT_EQ(differing, 999);
}

TEST(Arrivals, NeverGoBackInTimeAtAnyRate) {
  for (const double rate : {0.001, 1.0, 1e6, 1e9}) {
    for (const Distribution distribution : {Distribution::kConstant, Distribution::kPoisson}) {
      Arrivals arrivals(distribution, rate, At(0s), 1);
      EXPECT_EQ(arrivals.next(), At(0s));
      for (int i = 0; i < 1000; ++i) {
        const base::TimePoint before = arrivals.next();
        arrivals.Advance();
        ASSERT_GE(arrivals.next(), before);
      }
    }
  }
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
