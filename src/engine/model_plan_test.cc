// SPDX-License-Identifier: Apache-2.0
#include "engine/model_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "engine/testing/fakes.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

FakeModel Plain(const std::string& name) { return {PlainConfig(name)}; }
FakeModel Ensemble(const std::string& name, const std::vector<std::string>& steps) {
  return {EnsembleConfig(name, steps)};
}
FakeModel Refused(const std::string& name) {
  FakeModel model = Plain(name);
  model.refusal = base::InvalidArgumentError("no backend");
  return model;
}

std::vector<std::string> Names(const std::set<ModelId>& ids) {
  std::vector<std::string> names;
  for (const ModelId& id : ids) names.push_back(id.Text());
  return names;
}

// Makes plans for repositories and applies them to a state.
class APlan : public testing::Test {
 protected:
  // Sets `now_` to the state after a plan succeeded.
  void Do(ModelPlan plan) {
    now_ = ApplyPlan(now_, plan);
    for (const ModelId& id : plan.changed) now_.at(id).revision = ++revision_;
    last_ = std::move(plan);
  }
  void Poll() { Do(PlanPoll(repositories_, now_)); }
  void Load(std::set<std::string> names) {
    Do(PlanLoad(repositories_, {.names = std::move(names)}, now_));
  }
  void Unload(const std::string& name, bool with_parts = false) {
    Do(PlanUnload(name, with_parts, now_));
  }

  Events events_;
  FakeRepositories repositories_{events_};
  ModelInfos now_;
  ModelPlan last_;
  uint64_t revision_ = 0;
};

// --- Polling ---

TEST_F(APlan, OfTheFirstPollAddsAllThereIs) {
  repositories_.Put(Plain("a"));
  repositories_.Put(Plain("b"), "other");
  Poll();
  EXPECT_THAT(Names(last_.changed), ElementsAre("a", "b"));
  EXPECT_THAT(last_.removed, IsEmpty());
  EXPECT_TRUE(last_.all_polled);
  EXPECT_TRUE(now_.at("a").is_wanted);
}

TEST_F(APlan, OfAPollWithoutChangesIsEmpty) {
  repositories_.Put(Plain("a"));
  Poll();
  Poll();
  EXPECT_THAT(last_.affected, IsEmpty());
  EXPECT_EQ(repositories_.examined("a"), 1u);
}

TEST_F(APlan, OfAPollTellsAddedModifiedAndRemoved) {
  for (const char* name : {"same", "modified", "removed"}) repositories_.Put(Plain(name));
  Poll();
  repositories_.Put(Plain("added"));
  repositories_.Touch("modified");
  repositories_.Remove("removed");
  Poll();
  EXPECT_THAT(Names(last_.changed), ElementsAre("added", "modified"));
  EXPECT_THAT(Names(last_.removed), ElementsAre("removed"));
  EXPECT_FALSE(now_.contains("removed"));
}

TEST_F(APlan, OfAPollLeavesTheModelsOfAnUnreadableRepository) {
  repositories_.Put(Plain("near"), "near");
  repositories_.Put(Plain("far"), "far");
  Poll();
  repositories_.SetUnreadable("far", true);
  repositories_.Remove("near", "near");
  Poll();
  EXPECT_THAT(Names(last_.removed), ElementsAre("near"));
  EXPECT_TRUE(now_.contains("far"));
  EXPECT_FALSE(last_.all_polled);
}

TEST_F(APlan, OfAPollRefusesWhatIsUnfitAndKeepsWhatWasLoaded) {
  repositories_.Put(Plain("m"));
  Poll();
  repositories_.Put(Refused("m"));
  Poll();
  EXPECT_THAT(last_.changed, IsEmpty());
  EXPECT_THAT(last_.removed, IsEmpty());
  EXPECT_THAT(last_.refused, ElementsAre(Pair(ModelId("m"), "no backend")));
  EXPECT_FALSE(last_.all_polled);
  EXPECT_TRUE(now_.contains("m"));
}

TEST_F(APlan, OfAPollRemovesAModelThatTwoRepositoriesHave) {
  repositories_.Put(Plain("m"), "a");
  Poll();
  repositories_.Put(Plain("m"), "b");
  Poll();
  EXPECT_THAT(Names(last_.removed), ElementsAre("m"));
  EXPECT_EQ(last_.refused.at("m"), repository::kDuplicateReason);
  repositories_.Remove("m", "a");
  Poll();
  EXPECT_THAT(Names(last_.changed), ElementsAre("m"));
  EXPECT_EQ(now_.at("m").source->repository, "b");
}

TEST_F(APlan, OfAPollLoadsAModelThatMovedToAnotherRepository) {
  repositories_.Put(Plain("m"), "a");
  Poll();
  repositories_.Remove("m", "a");
  repositories_.Put(Plain("m"), "b");
  Poll();
  EXPECT_THAT(Names(last_.changed), ElementsAre("m"));
  EXPECT_THAT(last_.removed, IsEmpty());
}

TEST_F(APlan, OfAPollTriesAgainWhatFailed) {
  repositories_.Put(Plain("m"));
  Poll();
  // ModelControl does this after a failed load.
  now_.at("m").timestamp = now_.at("m").previous;
  Poll();
  EXPECT_THAT(Names(last_.changed), ElementsAre("m"));
}

// --- Ensembles affected by a change ---

TEST_F(APlan, AffectsEnsemblesAroundWhatChanges) {
  repositories_.Put(Plain("p"));
  repositories_.Put(Plain("q"));
  repositories_.Put(Ensemble("inner", {"p"}));
  repositories_.Put(Ensemble("outer", {"inner"}));
  repositories_.Put(Ensemble("other", {"q"}));
  Poll();
  repositories_.Touch("p");
  Poll();
  EXPECT_THAT(Names(last_.changed), ElementsAre("p"));
  EXPECT_THAT(Names(last_.affected), ElementsAre("inner", "outer", "p"));
}

TEST_F(APlan, AffectsEnsemblesWhosePartsComeAndGo) {
  repositories_.Put(Ensemble("e", {"p"}));
  Poll();
  EXPECT_THAT(Names(last_.affected), ElementsAre("e"));
  repositories_.Put(Plain("p"));
  Poll();
  EXPECT_THAT(Names(last_.affected), ElementsAre("e", "p"));
  repositories_.Remove("p");
  Poll();
  EXPECT_THAT(Names(last_.removed), ElementsAre("p"));
  EXPECT_THAT(Names(last_.affected), ElementsAre("e", "p"));
}

TEST_F(APlan, WithNamespacesAffectsEnsemblesThatMeanAnotherModelNow) {
  FakeRepositories repositories(events_, true);
  repositories.Put(Ensemble("e", {"p"}), "a");
  repositories.Put(Plain("p"), "b");
  Do(PlanPoll(repositories, now_));
  // From now on the step refers to the model of its own namespace.
  repositories.Put(Plain("p"), "a");
  Do(PlanPoll(repositories, now_));
  EXPECT_THAT(Names(last_.changed), ElementsAre("a::p"));
  EXPECT_THAT(Names(last_.affected), ElementsAre("a::e", "a::p"));
}

TEST_F(APlan, ConcernsAllThatItAffectsOrLooksAt) {
  repositories_.Put(Plain("p"));
  repositories_.Put(Ensemble("e", {"p"}));
  Load({"e"});
  Load({"e"});
  EXPECT_THAT(Names(last_.touched), ElementsAre("e", "p"));
  EXPECT_THAT(last_.affected, IsEmpty());
  EXPECT_TRUE(Concerns(last_, {"p"}));
  EXPECT_TRUE(Concerns(last_, {"e", "x"}));
  EXPECT_FALSE(Concerns(last_, {"x"}));
  Unload("p");
  EXPECT_TRUE(Concerns(last_, {"p"}));
  EXPECT_TRUE(Concerns(last_, {"e"}));
}

// Without this, a concurrent unload of the part alone would fail requests to the ensemble.
TEST_F(APlan, HoldsWhatEnsemblesConsistedOf) {
  for (const char* name : {"p", "q"}) repositories_.Put(Plain(name));
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Ensemble("around", {"e"}));
  Load({"around"});
  EXPECT_THAT(last_.held, IsEmpty());
  repositories_.Put(Ensemble("e", {"q"}));
  Load({"e"});
  EXPECT_THAT(Names(last_.held), ElementsAre("p"));
  EXPECT_TRUE(Concerns(last_, {"p"}));
  Unload("around");
  EXPECT_THAT(Names(last_.held), ElementsAre("e"));
  Unload("e");
  EXPECT_THAT(Names(last_.held), ElementsAre("q"));
  EXPECT_TRUE(Concerns(last_, {"q"}));
}

// --- Loads by name ---

TEST_F(APlan, OfALoadLooksAtNothingElse) {
  repositories_.Put(Plain("a"));
  repositories_.Put(Plain("b"));
  Load({"a"});
  EXPECT_THAT(Names(last_.changed), ElementsAre("a"));
  EXPECT_EQ(repositories_.examined("b"), 0u);
  Load({"b"});
  EXPECT_THAT(Names(last_.changed), ElementsAre("b"));
  EXPECT_TRUE(now_.contains("a"));
}

TEST_F(APlan, OfALoadBringsTheWholeTreeOfAnEnsemble) {
  repositories_.Put(Ensemble("outer", {"inner", "q"}));
  repositories_.Put(Ensemble("inner", {"p", "q"}));
  repositories_.Put(Plain("p"));
  repositories_.Put(Plain("q"));
  Load({"outer"});
  EXPECT_THAT(Names(last_.changed), ElementsAre("inner", "outer", "p", "q"));
  EXPECT_EQ(repositories_.examined("q"), 1u);
  EXPECT_TRUE(now_.at("outer").is_wanted);
  EXPECT_FALSE(now_.at("inner").is_wanted);
  EXPECT_FALSE(now_.at("q").is_wanted);
}

TEST_F(APlan, OfALoadEndsWithEnsemblesThatContainEachOther) {
  repositories_.Put(Ensemble("a", {"b"}));
  repositories_.Put(Ensemble("b", {"a"}));
  Load({"a"});
  EXPECT_THAT(Names(last_.changed), ElementsAre("a", "b"));
}

TEST_F(APlan, OfALoadRemembersWhoWasAskedForByName) {
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Plain("p"));
  Load({"e"});
  EXPECT_FALSE(now_.at("p").is_wanted);
  Load({"p"});
  EXPECT_THAT(last_.changed, IsEmpty());
  EXPECT_TRUE(now_.at("p").is_wanted);
  Load({"e"});
  EXPECT_TRUE(now_.at("p").is_wanted);
  repositories_.Touch("p");
  Load({"e"});
  EXPECT_THAT(Names(last_.changed), ElementsAre("p"));
  EXPECT_TRUE(now_.at("p").is_wanted);
}

TEST_F(APlan, OfALoadSaysWhatIsMissing) {
  repositories_.Put(Ensemble("e", {"missing", "no/name"}));
  Load({"e"});
  EXPECT_FALSE(last_.all_polled);
  EXPECT_THAT(Names(last_.changed), ElementsAre("e"));
  EXPECT_THAT(last_.refused, IsEmpty());
  EXPECT_THAT(last_.missing, ElementsAre("missing", "no/name"));
}

TEST_F(APlan, OfALoadKeepsAModelWhoseFilesAreUnfitNow) {
  repositories_.Put(Plain("m"));
  Load({"m"});
  repositories_.Put(Refused("m"));
  Load({"m"});
  EXPECT_THAT(Names(last_.touched), ElementsAre("m"));
  EXPECT_THAT(last_.changed, IsEmpty());
  EXPECT_EQ(last_.refused.at("m"), "no backend");
}

TEST_F(APlan, WithAConfigurationLoadsUntilTheFilesAreNewer) {
  repositories_.Put(Plain("m"));
  repositories_.AddOverride("{}", InstancesConfig("m", 2));
  const LoadOrder order{.names = {"m"}, .options = {.config = "{}"}, .wall_time_ns = 500};
  Do(PlanLoad(repositories_, order, now_));
  EXPECT_EQ(now_.at("m").source->config->instance_group.size(), 1u);
  EXPECT_TRUE(now_.at("m").is_overridden);
  // Files from before the request do not bring their configuration back, and repeating the request
  // counts as a change.
  Load({"m"});
  EXPECT_THAT(last_.changed, IsEmpty());
  EXPECT_TRUE(now_.at("m").is_overridden);
  Do(PlanLoad(repositories_, order, now_));
  EXPECT_THAT(Names(last_.changed), ElementsAre("m"));
  repositories_.Touch("m");
  Load({"m"});
  EXPECT_THAT(Names(last_.changed), ElementsAre("m"));
  EXPECT_THAT(now_.at("m").source->config->instance_group, IsEmpty());
  EXPECT_FALSE(now_.at("m").is_overridden);
  EXPECT_TRUE(now_.at("m").was_overridden);
}

TEST_F(APlan, WithAConfigurationConcernsOnlyTheModelNamed) {
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Plain("p"));
  FakeModel other = Ensemble("e", {"p", "p"});
  repositories_.AddOverride("{}", other.config);
  Do(PlanLoad(repositories_, {.names = {"e"}, .options = {.config = "{}"}}, now_));
  EXPECT_EQ(now_.at("e").source->config->ensemble_scheduling()->step.size(), 2u);
  EXPECT_EQ(now_.at("p").source->config->name, "p");
  EXPECT_TRUE(now_.at("e").is_overridden);
  EXPECT_FALSE(now_.at("p").is_overridden);
}

TEST_F(APlan, WithFilesLoadsTheseUntilThereAreNone) {
  auto folder = repository::PrivateFolder::Create({{.path = "1/model", .content = "x"}});
  ASSERT_TRUE(folder.ok());
  repositories_.Put(Plain("m"));
  Load({"m"});
  const service::LoadOptions options{.config = "{}", .files = {{"1/model", "x"}}};
  repositories_.AddOverride("{}", InstancesConfig("m", 2));
  Do(PlanLoad(repositories_, {.names = {"m"}, .options = options, .files = folder}, now_));
  EXPECT_THAT(Names(last_.changed), ElementsAre("m"));
  EXPECT_EQ(now_.at("m").source->repository, "");
  EXPECT_EQ(now_.at("m").source->files, *folder);
  EXPECT_TRUE(now_.at("m").is_overridden);
  Load({"m"});
  EXPECT_THAT(Names(last_.changed), ElementsAre("m"));
  EXPECT_EQ(now_.at("m").source->repository, "repo");
  EXPECT_FALSE(now_.at("m").is_overridden);
}

TEST_F(APlan, WithUnfitFilesKeepsWhatWasLoadedAndHidesTheFolder) {
  auto folder = repository::PrivateFolder::Create({{.path = "1/model", .content = "x"}});
  ASSERT_TRUE(folder.ok());
  repositories_.Put(Plain("m"));
  Load({"m"});
  const service::LoadOptions options{.config = "bad", .files = {{"1/model", "x"}}};
  Do(PlanLoad(repositories_, {.names = {"m"}, .options = options, .files = folder}, now_));
  EXPECT_THAT(Names(last_.touched), ElementsAre("m"));
  EXPECT_EQ(last_.refused.at("m"), "Invalid config override: unknown");
  // The folder could not be made.
  Do(PlanLoad(repositories_,
              {.names = {"m"}, .options = options, .files = base::InternalError("disk full")},
              now_));
  EXPECT_EQ(last_.refused.at("m"), "disk full");
  EXPECT_FALSE(last_.all_polled);
  EXPECT_EQ(now_.at("m").source->repository, "repo");
}

// --- Unloads ---

TEST_F(APlan, OfAnUnloadRemovesTheModelAndAffectsItsEnsembles) {
  repositories_.Put(Plain("p"));
  repositories_.Put(Ensemble("e", {"p"}));
  Load({"e"});
  Unload("p");
  EXPECT_THAT(Names(last_.removed), ElementsAre("p"));
  EXPECT_THAT(Names(last_.affected), ElementsAre("e", "p"));
  Unload("never heard of");
  EXPECT_THAT(last_.affected, IsEmpty());
}

TEST_F(APlan, OfAnUnloadWithPartsTakesWhatNobodyElseNeeds) {
  for (const char* name : {"only", "shared", "wanted"}) repositories_.Put(Plain(name));
  repositories_.Put(Ensemble("inner", {"only"}));
  repositories_.Put(Ensemble("e", {"inner", "shared", "wanted"}));
  repositories_.Put(Ensemble("other", {"shared"}));
  Load({"e"});
  Load({"other"});
  Load({"wanted"});
  Unload("e", true);
  EXPECT_THAT(Names(last_.removed), ElementsAre("e", "inner", "only"));
  Unload("other", true);
  EXPECT_THAT(Names(last_.removed), ElementsAre("other", "shared"));
}

TEST_F(APlan, OfAnUnloadWithPartsKeepsAPartThatIsUsedFurtherDown) {
  repositories_.Put(Plain("p"));
  repositories_.Put(Ensemble("inner", {"p"}));
  repositories_.Put(Ensemble("e", {"inner", "p"}));
  Load({"e"});
  Load({"inner"});
  Unload("e", true);
  EXPECT_THAT(Names(last_.removed), ElementsAre("e"));
}

TEST_F(APlan, WithNamespacesUnloadsAllModelsOfTheName) {
  FakeRepositories repositories(events_, true);
  repositories.Put(Plain("m"), "a");
  repositories.Put(Plain("m"), "b");
  Do(PlanLoad(repositories, {.names = {"m"}}, now_));
  EXPECT_THAT(Names(last_.changed), ElementsAre("a::m", "b::m"));
  Unload("m");
  EXPECT_THAT(Names(last_.removed), ElementsAre("a::m", "b::m"));
}

// --- Outdated plans ---

TEST_F(APlan, IsCurrentUntilOneOfItsModelsChanges) {
  repositories_.Put(Plain("a"));
  repositories_.Put(Plain("b"));
  repositories_.Put(Plain("c"));
  Load({"a", "b"});
  const ModelInfos then = now_;
  const ModelPlan touches_a = PlanLoad(repositories_, {.names = {"a"}}, then);
  const ModelPlan removes_b = PlanUnload("b", false, then);
  const ModelPlan adds_c = PlanLoad(repositories_, {.names = {"c"}}, then);
  for (const ModelPlan& plan : {touches_a, removes_b, adds_c}) {
    EXPECT_TRUE(IsCurrent(plan, then, now_));
  }
  repositories_.Touch("b");
  Load({"b"});
  EXPECT_TRUE(IsCurrent(touches_a, then, now_));
  EXPECT_FALSE(IsCurrent(removes_b, then, now_));
  Unload("a");
  EXPECT_FALSE(IsCurrent(touches_a, then, now_));
  EXPECT_TRUE(IsCurrent(adds_c, then, now_));
  Load({"c"});
  EXPECT_FALSE(IsCurrent(adds_c, then, now_));
}

TEST_F(APlan, ChangesOnlyItsOwnModels) {
  repositories_.Put(Plain("a"));
  repositories_.Put(Plain("b"));
  ModelPlan plan = PlanLoad(repositories_, {.names = {"a"}}, now_);
  Load({"b"});
  const ModelInfos next = ApplyPlan(now_, plan);
  EXPECT_TRUE(next.contains("a"));
  EXPECT_TRUE(next.contains("b"));
}

}  // namespace
}  // namespace nereid::engine
