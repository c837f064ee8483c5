// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

TuneSpace FourByThree() {
  return {.instances = {1, 2, 4, 8},
          .threads = {1, 2, 4, 8},
          .max_batches = {4, 8, 16, 32},
          .delays_us = {0, 100, 500, 2000}};
}

// A model on a machine with four cores: it is fastest with as many instances times threads as there
// are cores, and batches help up to a point. A short measurement is noisy.
class Machine {
 public:
  explicit Machine(unsigned seed, double noise) : random_(seed), noise_(noise) {}

  static double RateOf(const TuneChoice& choice) {
    const double instances = std::max(choice.instances, 1);
    const double threads = choice.threads == 0 ? 4 : choice.threads;
    const double crowding = std::abs(std::log2(instances * threads / 4));
    const double batch = std::log2(choice.max_batch == 0 ? 4 : choice.max_batch);
    const double delay = choice.delay_us < 0 ? 0 : choice.delay_us;
    return 1000 / (1 + 0.3 * crowding) / (1 + 0.1 * std::log2(threads)) *
           (1 + 0.2 * batch - 0.025 * batch * batch) / (1 + delay / 5000);
  }

  // The share of the budget that was spent.
  double used() const { return used_; }

  TuneWorld World(double budget) {
    return {.measure =
                [this, budget](const TuneChoice& choice, double effort, double) {
                  used_ += effort / budget;
                  std::normal_distribution<double> noise(1, noise_ / std::sqrt(effort));
                  return TuneScore{.meets = true,
                                   .rate = RateOf(choice) * noise(random_),
                                   .p99_us = 1000,
                                   .concurrency = 4};
                },
            .left = [this] { return 1 - used_; },
            .on_trial = {}};
  }

 private:
  std::mt19937 random_;
  double noise_;
  double used_ = 0;
};

TEST(SearchChoices, ComesWithinFivePercentOfTheBestInATenthOfTheTimeOfAGrid) {
  const TuneSpace space = FourByThree();
  double best = 0;
  for (const TuneChoice& choice : space.All()) best = std::max(best, Machine::RateOf(choice));
  // A grid that measures each choice as long as the finals do.
  const double budget = 3.0 * static_cast<double>(space.size()) / 10;
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Machine machine(seed, 0.03);
    const TuneOutcome outcome = SearchChoices(space, machine.World(budget));
    found += Machine::RateOf(outcome.best.choice) >= 0.95 * best ? 1 : 0;
  }
  EXPECT_GE(found, 97);
}

TEST(SearchChoices, BeginsWithThePresentConfiguration) {
  Machine machine(1, 0);
  const TuneOutcome outcome = SearchChoices(FourByThree(), machine.World(50));
  EXPECT_EQ(outcome.trials.front().choice, TuneChoice{});
  EXPECT_EQ(outcome.present.choice, TuneChoice{});
  EXPECT_TRUE(outcome.is_certain);
}

TEST(SearchChoices, MeasuresNoChoiceTwiceBeforeTheFinals) {
  Machine machine(1, 0);
  const TuneOutcome outcome = SearchChoices(FourByThree(), machine.World(200));
  std::set<TuneChoice> seen;
  for (const TuneTrial& trial : outcome.trials) {
    EXPECT_TRUE(trial.stage == 2 || seen.insert(trial.choice).second);
  }
}

TEST(SearchChoices, EndsWhenTheBudgetIsSpent) {
  Machine machine(1, 0);
  const TuneOutcome outcome = SearchChoices(FourByThree(), machine.World(1));
  // The present configuration, and one round of finals.
  EXPECT_LE(outcome.trials.size(), 3U);
  EXPECT_EQ(outcome.best.choice, TuneChoice{});
  EXPECT_FALSE(outcome.is_certain);
}

TEST(SearchChoices, StaysWithinTheBudgetHoweverFewMeasurementsItHolds) {
  // Three are the least: the present configuration, and the comparison of it with the best one.
  for (int budget = 4; budget < 300; ++budget) {
    Machine machine(1, 0.03);
    SearchChoices(FourByThree(), machine.World(budget));
    EXPECT_LE(machine.used(), 1.0001) << budget;
  }
}

TEST(SearchChoices, ADifferenceWithinTheNoiseIsNotCertain) {
  std::mt19937 random(3);
  double used = 0;
  const TuneWorld world = {.measure =
                               [&](const TuneChoice&, double effort, double) {
                                 used += effort / 100;
                                 std::normal_distribution<double> rate(1000, 50);
                                 return TuneScore{.meets = true, .rate = rate(random)};
                               },
                           .left = [&] { return 1 - used; },
                           .on_trial = {}};
  EXPECT_FALSE(SearchChoices(FourByThree(), world).is_certain);
}

TEST(SearchChoices, AChoiceThatCannotBeLoadedIsNeverTheWinner) {
  double used = 0;
  const TuneWorld world = {.measure =
                               [&](const TuneChoice& choice, double effort, double) {
                                 used += effort / 100;
                                 TuneScore score{.meets = true, .rate = 100.0 + choice.instances};
                                 if (choice.instances > 2) score.failure = "out of memory";
                                 return score;
                               },
                           .left = [&] { return 1 - used; },
                           .on_trial = {}};
  EXPECT_LE(SearchChoices(FourByThree(), world).best.choice.instances, 2);
}

TEST(IsBetter, PutsTheGoalBeforeTheRateAndTheLatencyInThePlaceOfAMissedGoal) {
  const TuneScore slow{.meets = true, .rate = 10, .p99_us = 900};
  const TuneScore fast{.meets = true, .rate = 20, .p99_us = 990};
  const TuneScore missed{.meets = false, .rate = 90, .p99_us = 2000};
  const TuneScore missed_more{.meets = false, .rate = 99, .p99_us = 3000};
  const TuneScore failed{.failure = "no"};
  EXPECT_TRUE(IsBetter(fast, slow));
  EXPECT_TRUE(IsBetter(slow, missed));
  EXPECT_TRUE(IsBetter(missed, missed_more));
  EXPECT_TRUE(IsBetter(missed_more, failed));
  EXPECT_FALSE(IsBetter(failed, failed));
}

// A machine without noise on which each setting helps or harms by itself, and has one best value.
class Landscape {
 public:
  Landscape(const TuneSpace& space, unsigned seed) {
    std::mt19937 random(seed);
    const auto peak = [&](const std::vector<int>& values, std::map<int, double>& factors) {
      const auto best = static_cast<int>(random() % std::max<size_t>(values.size(), 1));
      // Larger steps than noise, so that the search sees each of them.
      const double step = 1.05 + static_cast<double>(random() % 20) / 1000;
      for (int i = 0; i < static_cast<int>(values.size()); ++i) {
        factors[values[static_cast<size_t>(i)]] = std::pow(step, -std::abs(i - best));
      }
    };
    peak(space.instances, instances_);
    peak(space.threads, threads_);
    peak(space.max_batches, max_batches_);
    peak(space.delays_us, delays_);
  }

  double RateOf(const TuneChoice& choice) const {
    // What is as in the present configuration is bad, but works.
    const auto factor = [](const std::map<int, double>& factors, int value) {
      const auto found = factors.find(value);
      return found == factors.end() ? 0.5 : found->second;
    };
    return 1000 * factor(instances_, choice.instances) * factor(threads_, choice.threads) *
           factor(max_batches_, choice.max_batch) * factor(delays_, choice.delay_us);
  }

 private:
  std::map<int, double> instances_;
  std::map<int, double> threads_;
  std::map<int, double> max_batches_;
  std::map<int, double> delays_;
};

TuneSpace RandomSpace(std::mt19937& random) {
  const auto values = [&](std::vector<int> all) {
    all.resize(random() % (all.size() + 1));
    return all;
  };
  return {.instances = values({1, 2, 4, 8, 16}),
          .threads = values({1, 2, 4}),
          .max_batches = values({4, 8, 16, 32}),
          .delays_us = values({0, 100, 500})};
}

TEST(SearchChoices, FindsTheBestOfAllWhereNothingIsInDoubt) {
  std::mt19937 random(1);
  for (unsigned seed = 0; seed < 300; ++seed) {
    const TuneSpace space = RandomSpace(random);
    const std::vector<TuneChoice> all = space.All();
    ASSERT_EQ(all.size(), space.size());
    ASSERT_EQ(std::set<TuneChoice>(all.begin(), all.end()).size(), all.size());
    const Landscape land(space, seed);
    size_t told = 0;
    double used = 0;
    const TuneWorld world = {
        .measure =
            [&](const TuneChoice& choice, double effort, double) {
              used += effort / 1000;
              return TuneScore{.meets = true, .rate = land.RateOf(choice), .concurrency = 1};
            },
        .left = [&] { return 1 - used; },
        .on_trial = [&](const TuneTrial&) { ++told; }};
    const TuneOutcome outcome = SearchChoices(space, world);
    const TuneChoice& best = std::ranges::max(
        all, [&](const auto& a, const auto& b) { return land.RateOf(a) < land.RateOf(b); });
    EXPECT_DOUBLE_EQ(land.RateOf(outcome.best.choice), land.RateOf(best)) << seed;
    EXPECT_EQ(outcome.is_certain, outcome.best.choice != TuneChoice{});
    EXPECT_EQ(told, outcome.trials.size());
  }
}

TEST(SearchChoices, WhateverTheMeasurementsSayTheWinnerWasMeasuredAndIsOfTheSpace) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const TuneSpace space = RandomSpace(random);
    const std::vector<TuneChoice> all = space.All();
    double used = 0;
    const double budget = static_cast<double>(1 + random() % 60);
    const TuneWorld world = {.measure =
                                 [&](const TuneChoice&, double effort, double) {
                                   used += effort / budget;
                                   TuneScore score{.meets = random() % 2 == 0,
                                                   .rate = static_cast<double>(random() % 100),
                                                   .p99_us = static_cast<double>(random() % 100),
                                                   .concurrency = 1.0 + random() % 8};
                                   if (random() % 4 == 0) score.failure = "it failed";
                                   return score;
                                 },
                             .left = [&] { return 1 - used; },
                             .on_trial = {}};
    const TuneOutcome outcome = SearchChoices(space, world);
    ASSERT_EQ(outcome.trials.front().choice, TuneChoice{});
    for (const TuneTrial& trial : outcome.trials) {
      // A climb may begin at the present configuration and so leave some settings as they are.
      const TuneChoice& choice = trial.choice;
      const auto is_of = [](int value, const std::vector<int>& values, int present) {
        return value == present || std::ranges::find(values, value) != values.end();
      };
      ASSERT_TRUE(is_of(choice.instances, space.instances, 0) &&
                  is_of(choice.threads, space.threads, 0) &&
                  is_of(choice.max_batch, space.max_batches, 0) &&
                  is_of(choice.delay_us, space.delays_us, -1));
    }
    ASSERT_NE(std::ranges::find(outcome.trials, outcome.best.choice, &TuneTrial::choice),
              outcome.trials.end());
    // Nothing is called certain that is not better, or that is no change.
    if (!outcome.is_certain) continue;
    ASSERT_NE(outcome.best.choice, TuneChoice{});
    ASSERT_TRUE(IsBetter(outcome.best.score, outcome.present.score));
  }
}

}  // namespace
}  // namespace nereid::cli
