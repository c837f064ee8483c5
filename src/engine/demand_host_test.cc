// SPDX-License-Identifier: Apache-2.0
#include "engine/demand_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/timers.h"
#include "engine/on_demand.h"
#include "engine/testing/model_control_fixture.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DemandHostTest : public ModelControlFixture {
 protected:
  DemandHostTest() : ModelControlFixture(ControlMode::kOnDemand) {
    repositories_.Put({PlainConfig("a")});
    repositories_.Put({PlainConfig("b")});
    repositories_.Put({EnsembleConfig("e", {"a", "b"})});
    host_ = std::make_unique<EngineDemandHost>(repositories_, *control_, *life_cycle_,
                                               /*has_gpu_budget=*/false);
    EXPECT_EQ(Start(), "OK");
  }

  std::unique_ptr<EngineDemandHost> host_;
};

TEST_F(DemandHostTest, ListsModelsAndLoadsNone) {
  EXPECT_THAT(*host_->ListModels(), ElementsAre("a", "b", "e"));
  EXPECT_THAT(Index(), ElementsAre("a", "b", "e"));
  repositories_.SetUnreadable("repo", true);
  EXPECT_FALSE(host_->ListModels().has_value());
}

TEST_F(DemandHostTest, UnloadsAModelUnlessItIsInUse) {
  EXPECT_TRUE(host_->Load("a", {}).ok());
  core::ModelHandle pin = Pin("a");
  EXPECT_TRUE(host_->Observe().at("a").is_busy);
  EXPECT_FALSE(host_->UnloadIdle("a"));
  // Nothing has changed.
  EXPECT_TRUE(IsReady("a"));
  pin.Reset();
  EXPECT_FALSE(host_->Observe().at("a").is_busy);
  EXPECT_TRUE(host_->UnloadIdle("a"));
  // UnloadIdle returns when the memory of the model is free.
  EXPECT_EQ(factory_.alive(), 0u);
  EXPECT_THAT(Index(), ElementsAre("a:1 UNAVAILABLE unloaded", "b", "e"));
  EXPECT_TRUE(host_->Load("a", {}).ok());
  EXPECT_TRUE(host_->Find("a", "").ok());
}

TEST_F(DemandHostTest, UnloadsAnEnsembleWithItsPartsUnlessOneIsInUse) {
  EXPECT_TRUE(host_->Load("e", {}).ok());
  EXPECT_THAT(host_->Observe().at("e").parts, ElementsAre("a", "b"));
  core::ModelHandle pin = Pin("b");
  EXPECT_FALSE(host_->UnloadIdle("e"));
  EXPECT_TRUE(IsReady("e"));
  EXPECT_TRUE(IsReady("a"));
  pin.Reset();
  EXPECT_TRUE(host_->UnloadIdle("e"));
  EXPECT_EQ(factory_.alive(), 0u);
}

TEST_F(DemandHostTest, LeavesPartsThatWereLoadedForThemselves) {
  EXPECT_TRUE(host_->Load("a", {}).ok());
  EXPECT_TRUE(host_->Load("e", {}).ok());
  EXPECT_TRUE(host_->UnloadIdle("e"));
  EXPECT_TRUE(IsReady("a"));
  EXPECT_FALSE(IsReady("b"));
}

TEST_F(DemandHostTest, FindsAModelWhoseRulesNameAVersionThatIsNotReady) {
  repositories_.Put(FakeModel(PlainConfig("a")).With(AllVersions()).With({{1, 1}, {2, 1}}));
  EXPECT_TRUE(host_->Load("a", {}).ok());
  EXPECT_TRUE(
      life_cycle_->ChangeTraffic("a", {.labels = {{"stable", 2}}, .default_label = "stable"}).ok());
  repositories_.Put(FakeModel(PlainConfig("a")).With(SpecificVersions({1})));
  EXPECT_TRUE(host_->Load("a", {}).ok());
  EXPECT_FALSE(host_->Find("a", "").ok());
  EXPECT_TRUE(host_->FindAny("a"));
  EXPECT_FALSE(host_->FindAny("b"));
}

TEST_F(DemandHostTest, KeepsChangedRulesUntilAModelIsUnloadedExplicitly) {
  EXPECT_TRUE(host_->Load("a", {}).ok());
  EXPECT_TRUE(life_cycle_->ChangeTraffic("a", {.labels = {{"stable", 1}}}).ok());
  EXPECT_TRUE(host_->UnloadIdle("a"));
  EXPECT_TRUE(host_->Load("a", {}).ok());
  EXPECT_TRUE(host_->Find("a", "stable").ok());
  // The unload is explicit although the model is not loaded at that moment.
  EXPECT_TRUE(host_->UnloadIdle("a"));
  EXPECT_TRUE(host_->Unload("a", /*with_parts=*/false).ok());
  EXPECT_TRUE(host_->Load("a", {}).ok());
  EXPECT_FALSE(host_->Find("a", "stable").ok());
  EXPECT_TRUE(host_->Find("a", "").ok());
}

// The parts of an ensemble that is unloaded by others at the same time are not forgotten.
TEST_F(DemandHostTest, LeavesNoPartClosed) {
  std::atomic<bool> is_over = false;
  std::thread client([&] {
    while (!is_over) Unload("e");
  });
  for (int i = 0; i < 2000; ++i) {
    static_cast<void>(host_->Load("e", {}));  // fails if it is unloaded meanwhile
    host_->UnloadIdle("e");
  }
  is_over = true;
  client.join();
  EXPECT_TRUE(host_->Load("e", {}).ok());
  for (const char* name : {"a", "b", "e"}) EXPECT_TRUE(IsReady(name)) << name;
}

// Models on demand in a server that unloads what nobody uses.
class IdleUnloadTest : public DemandHostTest {
 protected:
  void TearDown() override {
    EXPECT_TRUE(demand_->Stop(InAMinute()));
    demand_.reset();
    DemandHostTest::TearDown();
  }
  void StartDemand() {
    demand_ =
        std::make_unique<OnDemand>(*host_, timers_,
                                   OnDemandOptions{.min_stay = std::chrono::milliseconds(0),
                                                   .idle_unload = std::chrono::milliseconds(1)});
    demand_->Refresh();
  }

  base::Timers timers_;
  std::unique_ptr<OnDemand> demand_;
};

TEST_F(IdleUnloadTest, UnloadsThePartsOfAnEnsembleThatFailed) {
  factory_.Fail("b:1", "the file is damaged");
  StartDemand();
  EXPECT_FALSE(demand_->Load("e", {}).ok());
  EXPECT_TRUE(WaitUntilGone("a:1"));
}

TEST_F(IdleUnloadTest, UnloadsThePartsThatAnEnsembleLeavesBehind) {
  EXPECT_TRUE(host_->Load("e", {}).ok());
  core::ModelHandle pin = Pin("e");
  StartDemand();
  EXPECT_TRUE(demand_->Unload("e", /*with_parts=*/false).ok());
  pin.Reset();
  EXPECT_TRUE(WaitUntilGone("a:1"));
  EXPECT_TRUE(WaitUntilGone("b:1"));
}

TEST_F(IdleUnloadTest, KeepsTheConfigurationOfALoadRequestThatALaterLoadHasNotReplaced) {
  repositories_.AddOverride("{}", InstancesConfig("a", 2));
  StartDemand();
  EXPECT_TRUE(demand_->Load("a", {.config = "{}"}).ok());
  EXPECT_TRUE(demand_->Load("a", {}).ok());
  EXPECT_TRUE(demand_->Load("b", {}).ok());
  // What goes, goes in the order of the names.
  EXPECT_TRUE(WaitUntilGone("b:1"));
  ASSERT_TRUE(IsReady("a"));
  EXPECT_EQ(Pin("a")->config().instance_group.size(), 1u);
  EXPECT_TRUE(demand_->Unload("a", /*with_parts=*/false).ok());
  ASSERT_TRUE(WaitUntilGone("a:1"));
  events_.Take();
  EXPECT_TRUE(demand_->Load("a", {}).ok());
  EXPECT_TRUE(WaitUntilGone("a:1"));
}

TEST_F(IdleUnloadTest, ForgetsTheFailedLoadOfAModelThatIsGone) {
  factory_.Fail("a:1", "the file is damaged");
  StartDemand();
  EXPECT_FALSE(demand_->Load("a", {}).ok());
  const auto reason = [&] { return life_cycle_->Table().Record("a")->versions.at(1).reason; };
  EXPECT_THAT(reason(), HasSubstr("the file is damaged"));
  demand_->Refresh();
  EXPECT_THAT(reason(), HasSubstr("the file is damaged"));
  repositories_.Remove("a");
  demand_->Refresh();
  EXPECT_EQ(reason(), kUnloadedReason);
}

TEST(MemoryMeter, SeesWhatAProcessAllocates) {
  MemoryMeter meter(/*with_gpus=*/false);
  EXPECT_THAT(meter.kinds(), ElementsAre("CPU"));
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  const uint64_t before = meter.Measure().front();
  {
    const std::vector<char> memory(kBytes, 1);
    EXPECT_GE(meter.Measure().front() + static_cast<uint64_t>(memory.front()),
              before + kBytes * 9 / 10);
  }
  // What was freed does not hide what comes next.
  const uint64_t between = meter.Measure().front();
  const std::vector<char> memory(kBytes, 1);
  EXPECT_GE(meter.Measure().front() + static_cast<uint64_t>(memory.front()),
            between + kBytes * 9 / 10);
}

TEST(MemoryMeter, ReadsWhatTheKernelSays) {
  EXPECT_EQ(AnonymousBytes("Name:\tx\nVmRSS:\t  30 kB\nRssAnon:\t  12 kB\nRssFile:\t 18 kB\n"),
            12u * 1024);
  EXPECT_EQ(AnonymousBytes("Name:\tx\n"), 0u);
  EXPECT_EQ(AnonymousBytes("RssAnon:"), 0u);
}

}  // namespace
}  // namespace nereid::engine
