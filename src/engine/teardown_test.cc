// SPDX-License-Identifier: Apache-2.0
#include "engine/teardown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "engine/testing/fakes.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ATeardown : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(teardown_.Wait(InAMinute()).work, IsEmpty()); }

  // Makes a version that was in service.
  std::unique_ptr<LoadedVersion> Version(const FakeModel& model, bool serves_steps = true) {
    auto source = std::make_shared<repository::ModelSource>(MakeSource(model, events_));
    auto version =
        std::make_unique<LoadedVersion>(source, *factory_.Load(*source, 1, base::OkStatus));
    version->serves_steps = serves_steps;
    events_.Take();
    return version;
  }
  static core::ModelHandle Pin(const LoadedVersion& version) {
    return version.model()->TryPin() ? core::ModelHandle(*version.model()) : core::ModelHandle();
  }
  void Retire(std::unique_ptr<LoadedVersion> version) {
    LoadedVersions versions;
    versions.push_back(std::move(version));
    teardown_.Expect(versions);
    teardown_.Add(std::move(versions));
  }

  Events events_;
  FakeFactory factory_{events_};
  Teardown teardown_{[this](const repository::ModelId& id, const core::Model& model) {
    events_.Add("told " + id.Text() + ":" + model.version_text());
  }};
};

TEST_F(ATeardown, EndsAVersionAndTellsOfItAfterwards) {
  Retire(Version(PlainConfig("m")));
  ASSERT_TRUE(events_.WaitFor("told m:1"));
  EXPECT_THAT(events_.Take(), ElementsAre("unload m:1", "told m:1"));
}

TEST_F(ATeardown, WaitsForTheRequestsOfAVersionAndTakesNoNewOnes) {
  auto version = Version(PlainConfig("m"));
  const std::shared_ptr<core::Model> model = version->model();
  core::ModelHandle request = Pin(*version);
  Retire(std::move(version));
  EXPECT_FALSE(model->TryPin());
  EXPECT_THAT(teardown_.Wait(Passed()).work,
              ElementsAre("Model 'm' (version 1) has 1 in-flight inferences"));
  EXPECT_EQ(teardown_.Wait(Passed()).busy_versions, 1u);
  request.Reset();
  EXPECT_THAT(teardown_.Wait(InAMinute()).work, IsEmpty());
}

TEST_F(ATeardown, TellsWhatTakesItsTimeToEnd) {
  factory_.HoldEnd("m:1");
  auto version = Version(PlainConfig("m"));
  Retire(std::move(version));
  EXPECT_THAT(teardown_.Wait(Passed()).work,
              ElementsAre("Model 'm' (version 1) is being unloaded"));
  // Another version does not wait for that.
  Retire(Version(PlainConfig("other")));
  ASSERT_TRUE(events_.WaitFor("told other:1"));
  factory_.LetGo("m:1");
  ASSERT_TRUE(events_.WaitFor("told m:1"));
}

TEST_F(ATeardown, LeavesAPartOpenWhileAnEnsembleHasRequests) {
  auto part = Version(PlainConfig("p"));
  auto ensemble = Version(EnsembleConfig("e", {"p"}));
  const std::shared_ptr<core::Model> model = part->model();
  core::ModelHandle request = Pin(*ensemble);
  Retire(std::move(ensemble));
  Retire(std::move(part));
  ASSERT_TRUE(model->TryPin());
  core::ModelHandle step(*model);
  request.Reset();
  ASSERT_TRUE(events_.WaitFor("told e:1"));
  EXPECT_FALSE(model->TryPin());
  step.Reset();
  ASSERT_TRUE(events_.WaitFor("told p:1"));
}

TEST_F(ATeardown, ClosesAPartAtOnceThatAnotherVersionHasReplaced) {
  auto part = Version(PlainConfig("p"), false);
  auto ensemble = Version(EnsembleConfig("e", {"p"}));
  const core::ModelHandle request = Pin(*ensemble);
  Retire(std::move(ensemble));
  Retire(std::move(part));
  EXPECT_TRUE(events_.WaitFor("told p:1"));
}

TEST_F(ATeardown, HoldsPartsForAnEnsembleFromItsAnnouncementOn) {
  LoadedVersions ensemble;
  ensemble.push_back(Version(EnsembleConfig("e", {"p"})));
  teardown_.Expect(ensemble);
  auto part = Version(PlainConfig("p"));
  const std::shared_ptr<core::Model> model = part->model();
  Retire(std::move(part));
  ASSERT_TRUE(model->TryPin());
  model->Unpin();
  // Wait includes announced versions.
  std::future<Unfinished> end =
      std::async(std::launch::async, [this] { return teardown_.Wait(InAMinute()); });
  teardown_.Add(std::move(ensemble));
  EXPECT_THAT(end.get().work, IsEmpty());
  EXPECT_EQ(events_.Count("unload p:1"), 1u);
}

TEST_F(ATeardown, EndsNestedEnsemblesFromTheOutsideIn) {
  LoadedVersions versions;
  versions.push_back(Version(PlainConfig("p")));
  versions.push_back(Version(EnsembleConfig("inner", {"p"})));
  versions.push_back(Version(EnsembleConfig("outer", {"inner", "p"})));
  const std::shared_ptr<core::Model> part = versions[0]->model();
  core::ModelHandle inner = Pin(*versions[1]);
  core::ModelHandle outer = Pin(*versions[2]);
  teardown_.Expect(versions);
  teardown_.Add(std::move(versions));
  outer.Reset();
  ASSERT_TRUE(events_.WaitFor("told outer:1"));
  ASSERT_TRUE(part->TryPin());
  part->Unpin();
  inner.Reset();
  ASSERT_TRUE(events_.WaitFor("told inner:1"));
  ASSERT_TRUE(events_.WaitFor("told p:1"));
}

TEST_F(ATeardown, HoldsAPartForEachOfTheEnsemblesThatContainIt) {
  auto one = Version(EnsembleConfig("one", {"p", "p"}));
  auto two = Version(EnsembleConfig("two", {"p"}));
  auto part = Version(PlainConfig("p"));
  const std::shared_ptr<core::Model> model = part->model();
  core::ModelHandle first = Pin(*one);
  core::ModelHandle second = Pin(*two);
  Retire(std::move(one));
  Retire(std::move(two));
  Retire(std::move(part));
  first.Reset();
  ASSERT_TRUE(events_.WaitFor("told one:1"));
  ASSERT_TRUE(model->TryPin());
  model->Unpin();
  second.Reset();
  ASSERT_TRUE(events_.WaitFor("told p:1"));
}

}  // namespace
}  // namespace nereid::engine
