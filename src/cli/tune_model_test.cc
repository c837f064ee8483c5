// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_model.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

// A server that works on up to eight requests at a time, each of which takes a millisecond.
class Server {
 public:
  TuneScore Find(double goal_us, double begin, double limit = 256) {
    return FindConcurrency(goal_us, begin, limit, [this](double concurrency) {
      measured_.push_back(concurrency);
      const double rate = std::min(concurrency, 8.0) * 1000;
      return TuneLevel{.rate = rate, .p99_us = concurrency / rate * 1e6, .failure = {}};
    });
  }
  const std::vector<double>& measured() const { return measured_; }

 private:
  std::vector<double> measured_;
};

TEST(FindConcurrency, StopsWhereMoreRequestsInFlightGainNothing) {
  Server server;
  const TuneScore score = server.Find(1e6, 0);
  EXPECT_TRUE(score.meets);
  EXPECT_EQ(score.rate, 8000);
  EXPECT_EQ(score.concurrency, 8);
  EXPECT_EQ(server.measured(), (std::vector<double>{1, 2, 4, 8, 16, 32}));
}

TEST(FindConcurrency, BeginsWhereAnotherConfigurationWasBest) {
  Server server;
  EXPECT_EQ(server.Find(1e6, 8).rate, 8000);
  EXPECT_EQ(server.measured(), (std::vector<double>{8, 16, 32}));
}

TEST(FindConcurrency, GoesDownToWhatMeetsTheGoal) {
  Server server;
  const TuneScore score = server.Find(3000, 64);
  EXPECT_TRUE(score.meets);
  EXPECT_EQ(score.rate, 8000);
  EXPECT_LE(score.p99_us, 3000);
}

TEST(FindConcurrency, LooksBetweenTwoNumbersForTheGoal) {
  std::vector<double> measured;
  // Each request in flight adds as much to the rate as to the latency.
  const TuneScore score = FindConcurrency(1300, 0, 256, [&](double concurrency) {
    measured.push_back(concurrency);
    return TuneLevel{.rate = concurrency * 100, .p99_us = concurrency * 100, .failure = {}};
  });
  EXPECT_EQ(score.concurrency, 12);
  EXPECT_EQ(measured, (std::vector<double>{1, 2, 4, 8, 16, 12, 14}));
}

TEST(FindConcurrency, TellsTheLatencyOfOneRequestIfTheGoalIsOutOfReach) {
  Server server;
  const TuneScore score = server.Find(500, 4);
  EXPECT_FALSE(score.meets);
  EXPECT_EQ(score.concurrency, 1);
  EXPECT_EQ(score.p99_us, 1000);
}

TEST(FindConcurrency, NeverPassesTheLimit) {
  Server server;
  EXPECT_EQ(server.Find(1e6, 0, 6).concurrency, 6);
}

TEST(FindConcurrency, EndsWithAFailure) {
  const TuneScore score = FindConcurrency(
      1000, 0, 8, [](double) { return TuneLevel{.rate = 0, .p99_us = 0, .failure = "no memory"}; });
  EXPECT_EQ(score.failure, "no memory");
}

}  // namespace
}  // namespace nereid::cli
