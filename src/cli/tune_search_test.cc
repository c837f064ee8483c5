// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_search.h"

#include <algorithm>
#include <cmath>
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

}  // namespace
}  // namespace nereid::cli
