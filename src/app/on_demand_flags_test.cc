// SPDX-License-Identifier: Apache-2.0
#include "app/on_demand_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "app/testing/command_line.h"

namespace nereid::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kOnDemand = "--model-control-mode=ondemand";

class OnDemandFlagsTest : public CommandLineTest {};

TEST_F(OnDemandFlagsTest, ChooseTheModeAndItsSettings) {
  const Options options =
      *Parse({kOnDemand, "--model-memory-budget=1000", "--model-gpu-memory-budget=2000",
              "--pin-model=a", "--pin-model=b", "--load-wait-secs=7", "--model-min-stay-secs=0",
              "--model-idle-secs=60", "--load-model=c"});
  EXPECT_EQ(options.engine.control.mode, engine::ControlMode::kOnDemand);
  EXPECT_THAT(options.engine.control.startup_models, ElementsAre("c"));
  const engine::OnDemandOptions& demand = options.engine.on_demand;
  EXPECT_EQ(demand.memory_budget, 1000u);
  EXPECT_EQ(demand.gpu_memory_budget, 2000u);
  EXPECT_THAT(demand.pinned, ElementsAre("a", "b"));
  EXPECT_EQ(demand.load_wait, std::chrono::seconds(7));
  EXPECT_EQ(demand.min_stay, std::chrono::seconds(0));
  EXPECT_EQ(demand.idle_unload, std::chrono::seconds(60));
}

TEST_F(OnDemandFlagsTest, RefuseWhatIsNoNumberAndNameTheFlag) {
  for (const Flag& flag : OnDemandFlags()) {
    if (flag.name == "pin-model") continue;
    for (const char* const value : {"-1", "", "many", "1.5", "9223372036854775808"}) {
      EXPECT_THAT(WhyNot({kOnDemand, "--" + std::string(flag.name) + "=" + value}),
                  HasSubstr(flag.name));
    }
  }
  EXPECT_THAT(WhyNot({kOnDemand, "--load-wait-secs=0"}), HasSubstr("load-wait-secs"));
  EXPECT_EQ(WhyNot({kOnDemand, "--pin-model="}), "--pin-model '': expected the name of a model");
}

TEST_F(OnDemandFlagsTest, RefuseSettingsWithoutEffect) {
  for (const char* const flag : {"--model-memory-budget=1", "--model-gpu-memory-budget=1",
                                 "--pin-model=a", "--model-idle-secs=1"}) {
    EXPECT_THAT(WhyNot({flag}), HasSubstr("has no effect without --model-control-mode=ondemand"));
    EXPECT_EQ(WhyNot({kOnDemand, flag}), "");
  }
}

TEST_F(OnDemandFlagsTest, RefuseWhatContradictsTheMode) {
  EXPECT_THAT(WhyNot({kOnDemand, "--model-namespacing=true"}), HasSubstr("several models"));
  EXPECT_THAT(WhyNot({kOnDemand, "--load-model=*"}), HasSubstr("when requests need them"));
}

}  // namespace
}  // namespace nereid::app
