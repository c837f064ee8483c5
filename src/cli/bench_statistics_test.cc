// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_statistics.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

std::vector<double> Noisy(double mean, double deviation, size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(mean, deviation);
  std::vector<double> samples;
  for (size_t i = 0; i < count; ++i) samples.push_back(noise(random));
  return samples;
}

TEST(StudentFactor, IsThatOfTables) {
  EXPECT_NEAR(StudentFactor(0.95, 1), 12.71, 0.01);
  EXPECT_NEAR(StudentFactor(0.95, 2), 4.303, 0.01);
  EXPECT_NEAR(StudentFactor(0.95, 3), 3.182, 0.03);
  EXPECT_NEAR(StudentFactor(0.95, 10), 2.228, 0.005);
  EXPECT_NEAR(StudentFactor(0.99, 3), 5.841, 0.25);
  EXPECT_NEAR(StudentFactor(0.99, 10), 3.169, 0.02);
  EXPECT_NEAR(StudentFactor(0.99, 1e6), 2.576, 0.001);
}

TEST(EstimateOf, OneSampleSaysNothingAboutItsError) {
  EXPECT_TRUE(std::isinf(EstimateOf({5}, {1}).margin));
  EXPECT_EQ(EstimateOf({5}, {1}).value, 5);
  EXPECT_TRUE(std::isinf(EstimateOf({}, {}).margin));
}

TEST(EstimateOf, TheIntervalHoldsTheTrueValueInNineteenOfTwentyCases) {
  int held = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const Estimate estimate = EstimateOf(Noisy(100, 10, 10, seed), {10});
    held += estimate.low() <= 100 && 100 <= estimate.high() ? 1 : 0;
  }
  EXPECT_NEAR(held, 950, 25);
}

TEST(EstimateOf, RoundsThatDifferWidenTheInterval) {
  const std::vector<double> samples = {100, 101, 99, 110, 111, 109, 90, 91, 89};
  EXPECT_GT(EstimateOf(samples, {3, 3, 3}).margin, 1.4 * EstimateOf(samples, {9}).margin);
}

TEST(Compare, ChanceIsSeldomTakenForADifference) {
  int noise = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const Estimate before = EstimateOf(Noisy(100, 10, 9, seed), {3, 3, 3});
    const Estimate after = EstimateOf(Noisy(100, 10, 9, seed + 5000), {3, 3, 3});
    noise += Compare(before, after).verdict == Verdict::kNoise ? 1 : 0;
  }
  EXPECT_GT(noise, 975);
}

TEST(Compare, AClearDifferenceIsSeen) {
  const Estimate before = EstimateOf(Noisy(100, 2, 9, 1), {9});
  const Estimate after = EstimateOf(Noisy(120, 2, 9, 2), {9});
  EXPECT_EQ(Compare(before, after).verdict, Verdict::kHigher);
  EXPECT_EQ(Compare(after, before).verdict, Verdict::kLower);
  EXPECT_NEAR(Compare(before, after).change, 0.2, 0.03);
}

TEST(Compare, ADifferenceThatIsCertainAndTinyIsNoise) {
  const Estimate before = EstimateOf({100, 100.001, 99.999}, {3});
  const Estimate after = EstimateOf({100.5, 100.501, 100.499}, {3});
  EXPECT_EQ(Compare(before, after).verdict, Verdict::kNoise);
}

TEST(Compare, TooFewSamplesAreNoise) {
  EXPECT_EQ(Compare(EstimateOf({1}, {1}), EstimateOf({9}, {1})).verdict, Verdict::kNoise);
}

}  // namespace
}  // namespace nereid::cli
