// SPDX-License-Identifier: Apache-2.0
// Tests model control without requests of clients: loading everything in the repositories, once or
// repeatedly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/model_control_fixture.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FakeModel Plain(const std::string& name) { return {PlainConfig(name)}; }
FakeModel Ensemble(const std::string& name, const std::vector<std::string>& steps) {
  return {EnsembleConfig(name, steps)};
}
FakeModel Unfit(const std::string& name) {
  FakeModel model = Plain(name);
  model.refusal = base::InvalidArgumentError("no backend");
  return model;
}

class AServerThatPolls : public ModelControlFixture {
 protected:
  AServerThatPolls() : ModelControlFixture(ControlMode::kPoll) {}

  void Poll() { control_->Poll(); }
};

TEST_F(AServerThatPolls, FollowsTheRepositories) {
  for (const char* name : {"same", "modified", "removed"}) repositories_.Put(Plain(name));
  EXPECT_EQ(Start(), "OK");
  events_.Take();
  repositories_.Put(Plain("added"));
  repositories_.Touch("modified");
  repositories_.Remove("removed");
  Poll();
  EXPECT_THAT(Index(true), ElementsAre("added:1 READY", "modified:1 READY", "same:1 READY"));
  ASSERT_TRUE(WaitUntilGone("modified:1"));
  ASSERT_TRUE(WaitUntilGone("removed:1"));
  EXPECT_EQ(events_.Count("load same:1"), 1u);
  EXPECT_EQ(events_.Count("load modified:1"), 2u);
  events_.Take();
  Poll();
  EXPECT_THAT(events_.Take(), IsEmpty());
}

TEST_F(AServerThatPolls, LoadsANewVersionBesideTheOthers) {
  FakeModel model = Plain("m").With(AllVersions());
  repositories_.Put(model);
  EXPECT_EQ(Start(), "OK");
  repositories_.Touch("m", 2);
  Poll();
  EXPECT_THAT(Index(true), ElementsAre("m:1 READY", "m:2 READY"));
  EXPECT_EQ(events_.Count("load m:1"), 1u);
  // Removing a version folder unloads the version. It also changes the time of the model's folder.
  repositories_.Put(model.With({{2, 1001}}));
  Poll();
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_THAT(Index(true), ElementsAre("m:2 READY"));
}

TEST_F(AServerThatPolls, KeepsTheModelsOfARepositoryThatCannotBeRead) {
  repositories_.Put(Plain("near"), "near");
  repositories_.Put(Plain("far"), "far");
  EXPECT_EQ(Start(), "OK");
  repositories_.SetUnreadable("far", true);
  repositories_.Remove("near", "near");
  Poll();
  EXPECT_THAT(Index(true), ElementsAre("far:1 READY"));
  repositories_.SetUnreadable("far", false);
  repositories_.Remove("far", "far");
  Poll();
  EXPECT_THAT(Index(true), IsEmpty());
}

TEST_F(AServerThatPolls, DoesNotStartWellWithARepositoryThatCannotBeRead) {
  repositories_.Put(Plain("m"));
  repositories_.SetUnreadable("far", true);
  EXPECT_EQ(Start(), "Internal: failed to load all models");
  EXPECT_TRUE(IsReady("m"));
}

TEST_F(AServerThatPolls, KeepsAModelWhoseConfigurationIsUnfitNowAndSaysWhyOfANewOne) {
  repositories_.Put(Plain("m"));
  EXPECT_EQ(Start(), "OK");
  repositories_.Put(Unfit("m"));
  repositories_.Put(Unfit("new"));
  Poll();
  EXPECT_TRUE(IsReady("m"));
  EXPECT_THAT(Index(), ElementsAre("m:1 READY", "new UNAVAILABLE no backend"));
  repositories_.Put(Plain("new"));
  Poll();
  EXPECT_THAT(Index(), ElementsAre("m:1 READY", "new:1 READY"));
}

TEST_F(AServerThatPolls, UnloadsAModelThatTwoRepositoriesHave) {
  repositories_.Put(Plain("m"), "a");
  EXPECT_EQ(Start(), "OK");
  repositories_.Put(Plain("m"), "b");
  Poll();
  EXPECT_FALSE(IsReady("m"));
  EXPECT_THAT(Index(), ElementsAre("m UNAVAILABLE model appears in two or more repositories"));
  repositories_.Remove("m", "a");
  Poll();
  EXPECT_THAT(Index(), ElementsAre("m:1 READY"));
}

TEST_F(AServerThatPolls, TriesAgainWhatFailedAndTellsItOnce) {
  const CapturedLog log;
  repositories_.Put(Plain("m"));
  factory_.Fail("m:1", "broken");
  EXPECT_EQ(Start(), "Internal: failed to load all models");
  Poll();
  Poll();
  EXPECT_EQ(events_.Count("load m:1"), 3u);
  EXPECT_EQ(log.Count("failed to load 'm' version 1"), 1u);
  factory_.Mend("m:1");
  Poll();
  EXPECT_TRUE(IsReady("m"));
  EXPECT_EQ(log.Count("successfully loaded 'm'"), 1u);
}

TEST_F(AServerThatPolls, IsReadyAgainWhenAModelWithoutVersionsIsGone) {
  repositories_.Put(Plain("good"));
  EXPECT_EQ(Start(), "OK");
  repositories_.Put(Plain("m").With(SpecificVersions({9})));
  Poll();
  EXPECT_FALSE(life_cycle_->Table().all_ready());
  repositories_.Remove("m");
  Poll();
  EXPECT_TRUE(life_cycle_->Table().all_ready());
  EXPECT_THAT(Index(), ElementsAre("good:1 READY"));
}

// Otherwise the statistics of the ensembles would begin again with each poll.
TEST_F(AServerThatPolls, LeavesEnsemblesAloneWhosePartCannotBeReplaced) {
  const CapturedLog log;
  repositories_.Put(Ensemble("outer", {"inner"}));
  repositories_.Put(Ensemble("inner", {"p"}));
  repositories_.Put(Plain("p"));
  EXPECT_EQ(Start(), "OK");
  const core::Model* const outer = &*Pin("outer");
  repositories_.Touch("p");
  factory_.Fail("p:1", "broken");
  for (int i = 0; i < 3; ++i) Poll();
  EXPECT_EQ(events_.Count("load p:1"), 4u);
  EXPECT_EQ(events_.Count("load inner:1"), 1u);
  EXPECT_EQ(events_.Count("load outer:1"), 1u);
  EXPECT_EQ(&*Pin("outer"), outer);
  EXPECT_EQ(log.Count("successfully loaded 'inner'"), 1u);
  // An ensemble that is changed is replaced all the same, and so is the one around it.
  repositories_.Touch("inner");
  Poll();
  EXPECT_EQ(events_.Count("load inner:1"), 2u);
  EXPECT_EQ(events_.Count("load outer:1"), 2u);
  factory_.Mend("p:1");
  Poll();
  EXPECT_EQ(events_.Count("load inner:1"), 3u);
  EXPECT_EQ(events_.Count("load outer:1"), 3u);
}

TEST_F(AServerThatPolls, TellsOnceWhatIsWrongWithAnEnsemble) {
  const CapturedLog log;
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Plain("p"));
  factory_.Fail("p:1", "broken");
  EXPECT_EQ(Start(), "Internal: failed to load all models");
  for (int i = 0; i < 3; ++i) Poll();
  EXPECT_EQ(log.Count("ensemble 'e' depends on 'p' which has no loaded version"), 1u);
  factory_.Mend("p:1");
  Poll();
  EXPECT_TRUE(IsReady("e"));
  // A failure is logged again after the model was loaded in between.
  repositories_.Remove("p");
  Poll();
  EXPECT_EQ(log.Count("ensemble e contains models that are not available"), 1u);
  repositories_.Put(Plain("p"));
  Poll();
  repositories_.Remove("p");
  Poll();
  EXPECT_EQ(log.Count("ensemble e contains models that are not available"), 2u);
}

TEST_F(AServerThatPolls, SaysWhyAnEnsembleIsUnloaded) {
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Plain("p"));
  EXPECT_EQ(Start(), "OK");
  repositories_.Put(Ensemble("e", {"q"}));
  repositories_.Touch("e");
  Poll();
  const auto why = [this] {
    const base::TimePoint deadline = InAMinute();
    std::string line = Index().front();
    while (line.find("UNLOADING") != std::string::npos &&
           std::chrono::steady_clock::now() < deadline) {
      line = Index().front();
    }
    return line;
  };
  EXPECT_THAT(why(),
              testing::StartsWith("e:1 UNAVAILABLE ensemble e contains models that are not"));
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Touch("e");
  Poll();
  EXPECT_EQ(why(), "e:1 READY");
  repositories_.Remove("p");
  Poll();
  EXPECT_THAT(why(),
              testing::StartsWith("e:1 UNAVAILABLE ensemble e contains models that are not"));
}

TEST_F(AServerThatPolls, UnloadsAndLoadsEnsemblesWithTheirParts) {
  repositories_.Put(Ensemble("outer", {"inner"}));
  repositories_.Put(Ensemble("inner", {"p"}));
  repositories_.Put(Plain("p"));
  EXPECT_EQ(Start(), "OK");
  core::ModelHandle request = Pin("outer");
  repositories_.Remove("p");
  Poll();
  EXPECT_THAT(Index(true), IsEmpty());
  EXPECT_TRUE(life_cycle_->FindForStep("inner", -1).ok());
  EXPECT_TRUE(life_cycle_->FindForStep("p", -1).ok());
  request.Reset();
  ASSERT_TRUE(WaitUntilGone("p:1"));
  repositories_.Put(Plain("p"));
  Poll();
  EXPECT_THAT(Index(true), ElementsAre("inner:1 READY", "outer:1 READY", "p:1 READY"));
}

TEST_F(AServerThatPolls, DoesNothingOnceItStops) {
  repositories_.Put(Plain("m"));
  EXPECT_TRUE(control_->Stop(InAMinute()));
  Poll();
  EXPECT_THAT(events_.Take(), IsEmpty());
}

TEST_F(AServerThatPolls, TellsTheFilesOfEachLoadHowItWent) {
  repositories_.Put(Plain("m").Watched());
  EXPECT_EQ(Start(), "OK");
  EXPECT_THAT(events_.Take(), ElementsAre("load m:1", "loaded m"));
  repositories_.Touch("m");
  factory_.Fail("m:1", "broken");
  Poll();
  // The files of a failed load are not kept.
  EXPECT_THAT(events_.Take(), ElementsAre("load m:1", "failed m", "gone m"));
  factory_.Mend("m:1");
  Poll();
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_EQ(events_.Count("loaded m"), 2u);
  EXPECT_EQ(events_.Count("unloading m"), 1u);
}

class AServerOfAllModels : public ModelControlFixture {
 protected:
  AServerOfAllModels() : ModelControlFixture(ControlMode::kNone) {}
};

TEST_F(AServerOfAllModels, LoadsThemOnceAndTakesNoOrders) {
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Plain("p"));
  EXPECT_EQ(Start(), "OK");
  EXPECT_THAT(Index(), ElementsAre("e:1 READY", "p:1 READY"));
  EXPECT_NE(Load("p"), "OK");
  EXPECT_NE(Unload("p"), "OK");
  EXPECT_TRUE(IsReady("p"));
}

TEST_F(AServerOfAllModels, StartsWithoutAny) {
  EXPECT_EQ(Start(), "OK");
  EXPECT_THAT(Index(), IsEmpty());
}

}  // namespace
}  // namespace nereid::engine
