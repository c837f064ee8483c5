// SPDX-License-Identifier: Apache-2.0
#include "engine/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/life_cycle_fixture.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::chrono::hours kHour{1};

class ReadinessTest : public LifeCycleFixture {
 protected:
  // Lets an hour pass in which an instance of the model works without a beat.
  void HangInstanceOf(const core::Model& model) {
    watch_ = watchdog_.Add({.heartbeat = heartbeat_,
                            .kind = "execution",
                            .name = "m_0",
                            .part = this,
                            .owner = &model});
    heartbeat_.Start();
    watchdog_.Look(kHour);
    watchdog_.Look(kHour);
  }

  base::Heartbeat heartbeat_;
  base::Watchdog watchdog_{kHour};
  base::Watchdog::Watch watch_;
  memory::Gpus gpus_{{.driver = "/no/such/libcuda.so.1"}};
  const Health health_{watchdog_, gpus_};
  const Readiness readiness_{*life_cycle_, health_};
};

TEST_F(ReadinessTest, NothingIsWrongWithModelsThatAreLoaded) {
  EXPECT_TRUE(readiness_.AreModelsReady());  // without any
  ASSERT_EQ(Load(FakeModel{PlainConfig("m")}), "OK");
  EXPECT_TRUE(readiness_.AreModelsReady());
  EXPECT_THAT(readiness_.CheckModels().problems, IsEmpty());
  EXPECT_FALSE(readiness_.MayBlock());
}

TEST_F(ReadinessTest, NamesVersionsThatFailedWithoutTheReason) {
  factory_.Fail("m:2", "a secret");
  Load(FakeModel{PlainConfig("m")}.With(AllVersions()).With({{1, 1}, {2, 1}}));
  EXPECT_FALSE(readiness_.AreModelsReady());
  EXPECT_THAT(readiness_.CheckModels().problems, ElementsAre("model 'm' version 2 is UNAVAILABLE"));
}

TEST_F(ReadinessTest, NamesModelsWithoutVersions) {
  Load(FakeModel{PlainConfig("m")}.With(SpecificVersions({9})));
  EXPECT_FALSE(readiness_.AreModelsReady());
  EXPECT_THAT(readiness_.CheckModels().problems,
              ElementsAre("model 'm' has no available versions"));
}

TEST_F(ReadinessTest, ModelsThatAreUnloadedDoNotMatter) {
  ASSERT_EQ(Load(FakeModel{PlainConfig("m")}), "OK");
  core::ModelHandle request = Pin("m");
  life_cycle_->Unload({"m"});
  for (const char* const state : {"UNLOADING", "UNAVAILABLE unloaded"}) {
    EXPECT_EQ(State("m"), state);
    EXPECT_TRUE(readiness_.AreModelsReady());
    EXPECT_THAT(readiness_.CheckModels().problems, IsEmpty());
    request.Reset();
    ASSERT_TRUE(life_cycle_->WaitUntilGone({"m"}, InAMinute()));
  }
}

TEST_F(ReadinessTest, AModelIsNotReadyIfItsOnlyInstanceIsStuck) {
  ASSERT_EQ(Load(FakeModel{PlainConfig("m")}), "OK");
  ASSERT_EQ(Load(FakeModel{PlainConfig("other")}), "OK");
  const core::ModelHandle model = Pin("m");
  HangInstanceOf(*model);
  EXPECT_FALSE(readiness_.IsReady(*model));
  EXPECT_TRUE(readiness_.IsReady(*Pin("other")));
  EXPECT_FALSE(readiness_.AreModelsReady());
  service::HealthCheck instances;
  service::HealthCheck backend;
  readiness_.CheckModel(*model, instances, backend);
  EXPECT_EQ(instances.problems.size(), 1u);
  EXPECT_THAT(backend.problems, IsEmpty());
  EXPECT_EQ(readiness_.CheckModels().problems.size(), 1u);
  heartbeat_.Rest();
}

}  // namespace
}  // namespace nereid::engine
