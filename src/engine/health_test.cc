// SPDX-License-Identifier: Apache-2.0
#include "engine/health.h"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::engine {
namespace {

using testing::HasSubstr;

constexpr std::chrono::hours kHour{1};

// Something of a model that is watched.
class Part {
 public:
  Part(base::Watchdog& watchdog, std::string_view kind, const core::Model* model = nullptr)
      : watch_(watchdog.Add(
            {.heartbeat = heartbeat_, .kind = kind, .name = "n", .part = this, .owner = model})) {}

  base::Heartbeat& heartbeat() { return heartbeat_; }

 private:
  base::Heartbeat heartbeat_;
  base::Watchdog::Watch watch_;
};

class HealthTest : public testing::Test {
 protected:
  // Lets an hour pass in which `part` works without a beat.
  void Hang(Part& part) {
    part.heartbeat().Start();
    watchdog_.Look(kHour);
    watchdog_.Look(kHour);
  }
  std::vector<std::string> FailedChecks() const {
    service::HealthChecks checks;
    health_.AddChecks(checks);
    std::vector<std::string> failed;
    for (const service::HealthCheck& check : checks) {
      if (!check.problems.empty()) failed.push_back(check.name);
    }
    return failed;
  }

  base::Watchdog watchdog_{kHour};
  memory::Gpus gpus_{{.driver = "/no/such/libcuda.so.1"}};
  const Health health_{watchdog_, gpus_};
  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {1});
};

TEST_F(HealthTest, AReactorThatIsStuckCallsForARestart) {
  Part reactor(watchdog_, "reactor");
  EXPECT_TRUE(health_.IsLive());
  EXPECT_TRUE(health_.IsWell());
  Hang(reactor);
  EXPECT_FALSE(health_.IsLive());
  EXPECT_EQ(FailedChecks(), std::vector<std::string>{"reactors"});
  EXPECT_TRUE(health_.CanExecute(*model_));
  reactor.heartbeat().Rest();
  watchdog_.Look(kHour);
  EXPECT_TRUE(health_.IsLive());
}

TEST_F(HealthTest, TheTimersThreadCallsForARestartToo) {
  Part timers(watchdog_, "scheduler");
  Hang(timers);
  EXPECT_FALSE(health_.IsLive());
  EXPECT_EQ(FailedChecks(), std::vector<std::string>{"scheduler"});
}

TEST_F(HealthTest, AModelWhoseOnlyInstanceIsStuckCannotExecuteButTheServerIsLive) {
  Part instance(watchdog_, "execution", model_.get());
  const auto other = core::MakeFakeModel(0, {1});
  Hang(instance);
  EXPECT_TRUE(health_.IsLive());
  EXPECT_FALSE(health_.IsWell());
  EXPECT_EQ(health_.WhyNot(*model_), "the execution 'n' has not got on for 3600 s");
  EXPECT_TRUE(health_.CanExecute(*other));
}

TEST_F(HealthTest, AModelWithAnInstanceThatGetsOnCanExecute) {
  Part stuck(watchdog_, "execution", model_.get());
  Part other(watchdog_, "execution", model_.get());
  Hang(stuck);
  EXPECT_TRUE(health_.CanExecute(*model_));
  Hang(other);
  EXPECT_FALSE(health_.CanExecute(*model_));
}

TEST_F(HealthTest, AModelWithSequencesNeedsEveryInstance) {
  auto config = std::make_shared<config::ModelConfig>();
  config->scheduling_choice = config::SequenceBatching();
  core::ModelOptions options;
  options.config = config;
  const core::Model model(std::move(options));
  Part stuck(watchdog_, "execution", &model);
  const Part other(watchdog_, "execution", &model);
  Hang(stuck);
  EXPECT_FALSE(health_.CanExecute(model));
}

TEST_F(HealthTest, IsOnTheMetricsPage) {
  Part reactor(watchdog_, "reactor");
  Hang(reactor);
  observe::MetricsPage page;
  health_.AddTo(page);
  const std::string text = page.Take();
  EXPECT_THAT(text, HasSubstr("nereid_stuck_threads{kind=\"reactor\"} 1"));
  EXPECT_THAT(text, HasSubstr("nereid_watchdog_alarms_total{kind=\"reactor\"} 1"));
  EXPECT_THAT(text, HasSubstr("nereid_failed_gpus 0"));
}

}  // namespace
}  // namespace nereid::engine
