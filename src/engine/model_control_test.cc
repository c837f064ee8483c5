// SPDX-License-Identifier: Apache-2.0
// Tests explicit control, which loads and unloads models that clients name. Polling is in
// model_poll_test.cc.
#include "engine/model_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "engine/testing/model_control_fixture.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

FakeModel Plain(const std::string& name) { return {PlainConfig(name)}; }
FakeModel Ensemble(const std::string& name, const std::vector<std::string>& steps) {
  return {EnsembleConfig(name, steps)};
}

class AModelControl : public ModelControlFixture {
 protected:
  using ModelControlFixture::ModelControlFixture;
};

// --- Loads and unloads ---

TEST_F(AModelControl, LoadsAndUnloadsByName) {
  repositories_.Put(Plain("a"));
  repositories_.Put(Plain("b"));
  EXPECT_THAT(Index(), ElementsAre("a", "b"));
  EXPECT_EQ(Load("a"), "OK");
  EXPECT_THAT(Index(), ElementsAre("a:1 READY", "b"));
  EXPECT_THAT(Index(true), ElementsAre("a:1 READY"));
  EXPECT_EQ(Unload("a"), "OK");
  ASSERT_TRUE(WaitUntilGone("a:1"));
  EXPECT_FALSE(IsReady("a"));
  EXPECT_THAT(Index(true), IsEmpty());
}

TEST_F(AModelControl, UnloadsWhatIsNotLoadedWithoutAWord) {
  EXPECT_EQ(Unload("never heard of"), "OK");
  EXPECT_EQ(Unload("never heard of", true), "OK");
}

TEST_F(AModelControl, SaysWhatCannotBeLoaded) {
  EXPECT_EQ(Load("missing"),
            "Internal: failed to load 'missing', failed to poll from model repository: model not "
            "found in any model repository");
  EXPECT_THAT(Load("no/name"), StartsWith("Invalid argument"));
  FakeModel unfit = Plain("unfit");
  unfit.refusal = base::InvalidArgumentError("no backend");
  repositories_.Put(unfit);
  EXPECT_EQ(Load("unfit"),
            "Internal: failed to load 'unfit', failed to poll from model repository: no backend");
  EXPECT_THAT(Index(), ElementsAre("unfit UNAVAILABLE no backend"));
  // The reason disappears when the error is fixed.
  repositories_.Put(Plain("unfit"));
  EXPECT_EQ(Load("unfit"), "OK");
  EXPECT_THAT(Index(), ElementsAre("unfit:1 READY"));
}

TEST_F(AModelControl, SaysWhyALoadFailedAndTriesAgainWhenAsked) {
  repositories_.Put(Plain("m"));
  factory_.Fail("m:1", "broken", 1);
  EXPECT_EQ(Load("m"),
            "Invalid argument: load failed for model 'm': version 1 is at UNAVAILABLE state: "
            "Internal: broken;\n");
  EXPECT_THAT(Index(), ElementsAre("m:1 UNAVAILABLE Internal: broken"));
  EXPECT_EQ(Load("m"), "OK");
}

TEST_F(AModelControl, LoadsAgainOnlyWhatChanged) {
  repositories_.Put(Plain("m"));
  ASSERT_EQ(Load("m"), "OK");
  EXPECT_EQ(Load("m"), "OK");
  EXPECT_EQ(events_.Count("load m:1"), 1u);
  repositories_.Touch("m");
  EXPECT_EQ(Load("m"), "OK");
  EXPECT_EQ(events_.Count("load m:1"), 2u);
}

TEST_F(AModelControl, ForgetsAModelWithoutVersionsThatIsUnloaded) {
  repositories_.Put(Plain("m").With(SpecificVersions({9})));
  EXPECT_THAT(Load("m"), HasSubstr("at least one version must be available"));
  EXPECT_FALSE(life_cycle_->Table().all_ready());
  EXPECT_EQ(Unload("m"), "OK");
  EXPECT_TRUE(life_cycle_->Table().all_ready());
  EXPECT_THAT(Index(), ElementsAre("m"));
}

TEST_F(AModelControl, KeepsWhatIsReadyWhenALoadFails) {
  repositories_.Put(Plain("m"));
  ASSERT_EQ(Load("m"), "OK");
  repositories_.Touch("m");
  factory_.Fail("m:1", "broken");
  EXPECT_THAT(Load("m"), HasSubstr("broken"));
  EXPECT_TRUE(IsReady("m"));
  // It also stays ready when the new files are refused without being loaded.
  FakeModel unfit = Plain("m");
  unfit.refusal = base::InvalidArgumentError("no backend");
  repositories_.Put(unfit);
  EXPECT_THAT(Load("m"), HasSubstr("no backend"));
  EXPECT_TRUE(IsReady("m"));
  repositories_.Remove("m");
  EXPECT_THAT(Load("m"), HasSubstr("model not found"));
  EXPECT_TRUE(IsReady("m"));
  EXPECT_THAT(Index(), ElementsAre("m:1 READY"));
}

TEST_F(AModelControl, LoadsTheVersionsThatThePolicyNamesNow) {
  FakeModel model = Plain("m").With(SpecificVersions({1})).With({{1, 1}, {2, 1}});
  repositories_.Put(model);
  ASSERT_EQ(Load("m"), "OK");
  EXPECT_THAT(Index(), ElementsAre("m:1 READY"));
  repositories_.Put(model.With(SpecificVersions({2})));
  ASSERT_EQ(Load("m"), "OK");
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_THAT(Index(true), ElementsAre("m:2 READY"));
  repositories_.Put(model.With(SpecificVersions({3})));
  EXPECT_THAT(Load("m"), HasSubstr("at least one version must be available"));
  EXPECT_THAT(Index(true), ElementsAre("m:2 READY"));
}

TEST_F(AModelControl, LoadsModelsSideBySide) {
  repositories_.Put(Plain("slow"));
  repositories_.Put(Plain("quick"));
  factory_.Hold("slow:1");
  std::future<std::string> slow = LoadInBackground("slow");
  ASSERT_TRUE(events_.WaitFor("load slow:1"));
  EXPECT_EQ(Load("quick"), "OK");
  EXPECT_EQ(Unload("quick"), "OK");
  factory_.LetGo("slow:1");
  EXPECT_EQ(slow.get(), "OK");
}

TEST_F(AModelControl, LoadsAModelOnceForAllWhoAskAtTheSameTime) {
  repositories_.Put(Plain("m"));
  factory_.Hold("m:1");
  std::vector<std::future<std::string>> loads;
  for (int i = 0; i < 4; ++i) loads.push_back(LoadInBackground("m"));
  ASSERT_TRUE(events_.WaitFor("load m:1"));
  factory_.LetGo("m:1");
  for (auto& load : loads) EXPECT_EQ(load.get(), "OK");
  EXPECT_EQ(events_.Count("load m:1"), 1u);
}

TEST_F(AModelControl, TellsALoadThatItWasGivenUpHoweverManyUnloadsWait) {
  repositories_.Put(Plain("m"));
  for (int round = 0; round < 20; ++round) {
    factory_.Hold("m:1");
    events_.Take();
    std::future<std::string> load = LoadInBackground("m");
    ASSERT_TRUE(events_.WaitFor("load m:1"));
    std::vector<std::future<std::string>> unloads;
    for (int i = 0; i < 4; ++i) unloads.push_back(UnloadInBackground("m"));
    EXPECT_THAT(load.get(), HasSubstr("the load was given up"));
    for (auto& unload : unloads) EXPECT_EQ(unload.get(), "OK");
    EXPECT_THAT(Index(), ElementsAre("m:1 UNAVAILABLE unloaded"));
  }
}

TEST_F(AModelControl, PlansAnewWhenAnotherOperationWasFaster) {
  repositories_.Put(Plain("p"));
  repositories_.Put(Ensemble("e", {"p"}));
  ASSERT_EQ(Load("e"), "OK");
  // While the ensemble is being scanned, its part is unloaded; the load brings the part back.
  std::atomic<bool> is_first = true;
  repositories_.SetExamineHook([&](const std::string& name) {
    if (name != "e" || !is_first.exchange(false)) return;
    EXPECT_EQ(Unload("p"), "OK");
  });
  repositories_.Put(Ensemble("e", {"p", "p"}));
  EXPECT_EQ(Load("e"), "OK");
  EXPECT_TRUE(IsReady("e"));
  EXPECT_TRUE(IsReady("p"));
}

TEST_F(AModelControl, ServesOnlyTheModeThatItWasMadeFor) {
  const ModelControl other(repositories_, *life_cycle_, {.mode = ControlMode::kNone});
  ModelControl control(repositories_, *life_cycle_, {.mode = ControlMode::kPoll});
  EXPECT_THAT(control.Load("m", {}).ToString(),
              StartsWith("Unavailable: explicit model load / unload is not allowed"));
  EXPECT_THAT(control.Unload("m", false).ToString(),
              StartsWith("Unavailable: explicit model load / unload is not allowed"));
}

// --- Ensembles ---

TEST_F(AModelControl, LoadsAnEnsembleAfterWhatItContains) {
  repositories_.Put(Ensemble("outer", {"inner", "q"}));
  repositories_.Put(Ensemble("inner", {"p", "q"}));
  repositories_.Put(Plain("p"));
  repositories_.Put(Plain("q"));
  EXPECT_EQ(Load("outer"), "OK");
  std::vector<std::string> order = events_.Take();
  ASSERT_EQ(order.size(), 4u);
  EXPECT_THAT(order, testing::IsSupersetOf({"load p:1", "load q:1"}));
  EXPECT_EQ(order[2], "load inner:1");
  EXPECT_EQ(order[3], "load outer:1");
}

TEST_F(AModelControl, LoadsTheEnsemblesAroundAModelAnew) {
  repositories_.Put(Ensemble("outer", {"inner"}));
  repositories_.Put(Ensemble("inner", {"p"}));
  repositories_.Put(Plain("p"));
  ASSERT_EQ(Load("outer"), "OK");
  events_.Take();
  repositories_.Touch("p");
  EXPECT_EQ(Load("p"), "OK");
  ASSERT_TRUE(WaitUntilGone("p:1"));
  ASSERT_TRUE(WaitUntilGone("inner:1"));
  ASSERT_TRUE(WaitUntilGone("outer:1"));
  EXPECT_EQ(events_.Count("load inner:1"), 2u);
  EXPECT_EQ(events_.Count("load outer:1"), 2u);
}

TEST_F(AModelControl, SaysWhichPartOfAnEnsembleIsMissing) {
  repositories_.Put(Ensemble("e", {"p"}));
  EXPECT_EQ(Load("e"),
            "Invalid argument: load failed for model 'e': ensemble e contains models that are not "
            "available or ambiguous: p\n");
  EXPECT_THAT(Index(), ElementsAre("e UNAVAILABLE ensemble e contains models that are not "
                                   "available or ambiguous: p"));
  repositories_.Put(Plain("p"));
  EXPECT_EQ(Load("p"), "OK");
  EXPECT_TRUE(IsReady("e"));
}

TEST_F(AModelControl, SaysWhichPartOfAnEnsembleFailed) {
  repositories_.Put(Ensemble("outer", {"inner"}));
  repositories_.Put(Ensemble("inner", {"p"}));
  repositories_.Put(Plain("p"));
  factory_.Fail("p:1", "broken");
  EXPECT_THAT(Load("inner"),
              HasSubstr("ensemble 'inner' depends on 'p' which has no loaded version. Model 'p' "
                        "loading failed with error: version 1 is at UNAVAILABLE state: Internal: "
                        "broken;"));
  EXPECT_THAT(Load("outer"), HasSubstr("ensemble 'outer' depends on 'inner' which is not valid. "
                                       "Model 'inner' failed with error: "));
  factory_.Mend("p:1");
  EXPECT_EQ(Load("outer"), "OK");
}

TEST_F(AModelControl, SaysWhichPartOfAnEnsembleCannotBeReadNow) {
  repositories_.Put(Ensemble("e", {"p", "q"}));
  repositories_.Put(Plain("p"));
  repositories_.Put(Plain("q"));
  ASSERT_EQ(Load("e"), "OK");
  FakeModel unfit = Plain("p");
  unfit.refusal = base::InvalidArgumentError("no backend");
  repositories_.Put(unfit);
  const std::string failure =
      "Internal: failed to load 'e', failed to poll from model repository: ";
  EXPECT_EQ(Load("e"), failure + "part 'p': no backend");
  repositories_.Remove("q");
  EXPECT_EQ(Load("e"),
            failure + "part 'p': no backend\npart 'q': model not found in any model repository");
  EXPECT_TRUE(IsReady("e"));
  // What is to be said of the ensemble itself comes alone.
  repositories_.Remove("e");
  EXPECT_EQ(Load("e"), failure + "model not found in any model repository");
  EXPECT_TRUE(IsReady("e"));
}

TEST_F(AModelControl, RefusesAnEnsembleOfAVersionThatIsNotThere) {
  repositories_.Put(Ensemble("e", {"p:2"}));
  repositories_.Put(Plain("p"));
  EXPECT_THAT(Load("e"), HasSubstr("ensemble 'e' depends on 'p' whose required version 2 is not "
                                   "loaded."));
  repositories_.Put(Plain("p").With({{1, 1}, {2, 1}}));
  EXPECT_EQ(Load("e"), "OK");
}

TEST_F(AModelControl, RefusesEnsemblesThatContainEachOther) {
  repositories_.Put(Ensemble("a", {"b"}));
  repositories_.Put(Ensemble("b", {"a"}));
  EXPECT_THAT(Load("a"), HasSubstr("circular dependency between ensembles: a -> ... -> b -> a"));
}

TEST_F(AModelControl, SaysEachTimeWhyAnEnsembleDoesNotFitItsModels) {
  repositories_.Put(Ensemble("e", {"p"}));
  FakeModel other = Plain("p");
  other.config.input.front().data_type = tensor::DataType::kInt32;
  repositories_.Put(other);
  const std::string first = Load("e");
  EXPECT_THAT(first, HasSubstr("load failed for model 'e'"));
  EXPECT_EQ(Load("e"), first);
  // This also holds if the ensemble was served before and a change of its part made it invalid.
  repositories_.Put(Plain("p"));
  ASSERT_EQ(Load("e"), "OK");
  repositories_.Put(other);
  EXPECT_EQ(Load("p"), "OK");
  EXPECT_FALSE(IsReady("e"));
  EXPECT_EQ(Load("e"), first);
}

TEST_F(AModelControl, CallsALoadThatChangesNothingGoodWhileTheModelIsServed) {
  repositories_.Put(Plain("m"));
  ASSERT_EQ(Load("m"), "OK");
  EXPECT_THAT(Load("m", {.config = "unknown"}), HasSubstr("Invalid config override"));
  repositories_.AddOverride("{}", InstancesConfig("m", 2));
  factory_.Fail("m:1", "no memory");
  EXPECT_THAT(Load("m", {.config = "{}"}), HasSubstr("no memory"));
  EXPECT_EQ(Load("m"), "OK");
}

TEST_F(AModelControl, UnloadsEnsemblesWithTheirLastPart) {
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Plain("p"));
  ASSERT_EQ(Load("e"), "OK");
  EXPECT_EQ(Unload("p"), "OK");
  EXPECT_FALSE(IsReady("e"));
  ASSERT_TRUE(WaitUntilGone("e:1"));
  ASSERT_TRUE(WaitUntilGone("p:1"));
  // The ensemble is loaded again with its part.
  EXPECT_EQ(Load("p"), "OK");
  EXPECT_TRUE(IsReady("e"));
}

TEST_F(AModelControl, LetsRequestsEndInEnsemblesThatAChangeBelowMakesUnfit) {
  repositories_.Put(Ensemble("outer", {"inner"}));
  repositories_.Put(Ensemble("inner", {"p"}));
  repositories_.Put(Plain("p"));
  ASSERT_EQ(Load("outer"), "OK");
  core::ModelHandle request = Pin("outer");
  FakeModel other = Plain("p");
  other.config.input.front().data_type = tensor::DataType::kInt32;
  repositories_.Put(other);
  EXPECT_EQ(Load("p"), "OK");
  EXPECT_FALSE(IsReady("outer"));
  EXPECT_TRUE(life_cycle_->FindForStep("inner", -1).ok());
  request.Reset();
  ASSERT_TRUE(WaitUntilGone("inner:1"));
}

TEST_F(AModelControl, UnloadsWithAnEnsembleWhatNobodyElseNeeds) {
  for (const char* name : {"only", "wanted", "shared"}) repositories_.Put(Plain(name));
  repositories_.Put(Ensemble("e", {"only", "wanted", "shared"}));
  repositories_.Put(Ensemble("other", {"shared"}));
  ASSERT_EQ(Load("e"), "OK");
  ASSERT_EQ(Load("other"), "OK");
  ASSERT_EQ(Load("wanted"), "OK");
  EXPECT_EQ(Unload("e", true), "OK");
  EXPECT_THAT(Index(true), ElementsAre("other:1 READY", "shared:1 READY", "wanted:1 READY"));
}

TEST_F(AModelControl, MakesAnUnloadOfAPartWaitForTheLoadOfItsEnsemble) {
  repositories_.Put(Ensemble("e", {"p", "q"}));
  repositories_.Put(Plain("p"));
  repositories_.Put(Plain("q"));
  ASSERT_EQ(Load("p"), "OK");
  factory_.Hold("q:1");
  std::future<std::string> load = LoadInBackground("e");
  ASSERT_TRUE(events_.WaitFor("load q:1"));
  std::future<std::string> unload = UnloadInBackground("p");
  EXPECT_TRUE(IsReady("p"));
  factory_.LetGo("q:1");
  EXPECT_EQ(load.get(), "OK");
  EXPECT_EQ(unload.get(), "OK");
  EXPECT_EQ(events_.Count("load e:1"), 1u);
  EXPECT_FALSE(IsReady("p"));
  EXPECT_FALSE(IsReady("e"));
  EXPECT_TRUE(IsReady("q"));
}

TEST_F(AModelControl, KeepsAnotherEnsembleThatHasAReadyPartWhenOneOfItsPartsFails) {
  repositories_.Put(Ensemble("e", {"p"}));
  repositories_.Put(Plain("p"));
  ASSERT_EQ(Load("e"), "OK");
  repositories_.Touch("p");
  factory_.Fail("p:1", "broken");
  EXPECT_THAT(Load("p"), HasSubstr("broken"));
  EXPECT_TRUE(IsReady("p"));
  EXPECT_TRUE(IsReady("e"));
}

// --- Overrides in load requests ---

TEST_F(AModelControl, LoadsWithAConfigurationInPlaceOfTheFile) {
  repositories_.Put(Plain("m"));
  repositories_.AddOverride("{}", InstancesConfig("m", 2));
  ASSERT_EQ(Load("m", {.config = "{}"}), "OK");
  EXPECT_EQ(Pin("m")->config().instance_group.size(), 1u);
  // The configuration file does not take effect before it changes.
  ASSERT_EQ(Load("m"), "OK");
  EXPECT_EQ(events_.Count("load m:1"), 1u);
  EXPECT_TRUE(control_->IsOverridden("m"));
  ASSERT_EQ(Unload("m"), "OK");
  EXPECT_FALSE(control_->IsOverridden("m"));
}

TEST_F(AModelControl, KnowsWhetherARequestBroughtTheConfigurationThatIsServed) {
  repositories_.Put(Plain("m"));
  repositories_.AddOverride("{}", InstancesConfig("m", 2));
  ASSERT_EQ(Load("m"), "OK");
  EXPECT_FALSE(control_->IsOverridden("m"));
  // A load that fails changes nothing, whichever of the two it brings.
  factory_.Fail("m:1", "broken", 1);
  EXPECT_THAT(Load("m", {.config = "{}"}), HasSubstr("broken"));
  EXPECT_FALSE(control_->IsOverridden("m"));
  ASSERT_EQ(Load("m", {.config = "{}"}), "OK");
  EXPECT_TRUE(control_->IsOverridden("m"));
  FakeModel newer = Plain("m");
  newer.config_time_ns = std::numeric_limits<int64_t>::max();
  repositories_.Remove("m");
  repositories_.Put(newer);
  factory_.Fail("m:1", "broken", 1);
  EXPECT_THAT(Load("m"), HasSubstr("broken"));
  EXPECT_TRUE(control_->IsOverridden("m"));
  ASSERT_EQ(Load("m"), "OK");
  EXPECT_FALSE(control_->IsOverridden("m"));
}

TEST_F(AModelControl, LoadsFilesInPlaceOfTheRepositoryAndKeepsThemAsLongAsTheyAreServed) {
  repositories_.AddOverride("{}", PlainConfig("m"));
  const service::LoadOptions options{.config = "{}", .files = {{"1/model", "content"}}};
  EXPECT_EQ(Load("m", options), "OK");
  EXPECT_TRUE(IsReady("m"));
  EXPECT_THAT(Index(), ElementsAre("m:1 READY"));
  EXPECT_EQ(Load("m", {.files = {{"1/model", "content"}}}),
            "Internal: failed to load 'm', failed to poll from model repository: Load parameter "
            "'config' must be specified for model file override");
  EXPECT_TRUE(IsReady("m"));
  EXPECT_THAT(Load("m", {.config = "{}", .files = {{"../outside", ""}}}),
              HasSubstr("failed to load 'm'"));
}

// --- Ambiguous names ---

TEST_F(AModelControl, ServesNoneOfTwoModelsOfOneName) {
  repositories_.Put(Plain("m"), "a");
  repositories_.Put(Plain("m"), "b");
  EXPECT_THAT(Load("m"), HasSubstr("model not found in any model repository"));
  EXPECT_THAT(Index(), ElementsAre("m UNAVAILABLE model appears in two or more repositories"));
  repositories_.Remove("m", "b");
  EXPECT_EQ(Load("m"), "OK");
}

class AModelControlWithNamespaces : public ModelControlFixture {
 protected:
  AModelControlWithNamespaces() : ModelControlFixture(ControlMode::kExplicit, true) {}
};

TEST_F(AModelControlWithNamespaces, LoadsAllModelsOfAName) {
  repositories_.Put(Plain("m"), "a");
  repositories_.Put(Plain("m"), "b");
  EXPECT_EQ(Load("m"), "OK");
  EXPECT_THAT(Index(), ElementsAre("m:1 READY", "m:1 READY"));
  EXPECT_FALSE(IsReady("m"));  // the name is ambiguous
  EXPECT_TRUE(life_cycle_->FindForStep("a::m", -1).ok());
  repositories_.Put(Ensemble("e", {"m"}), "b");
  EXPECT_EQ(Load("e"), "OK");
  EXPECT_TRUE(IsReady("e"));
  EXPECT_EQ(Unload("m"), "OK");
  EXPECT_FALSE(IsReady("e"));
}

// --- Start-up ---

TEST_F(AModelControl, StartsWithTheModelsThatAreNamed) {
  for (const char* name : {"a", "b", "c"}) repositories_.Put(Plain(name));
  Restart({"a", "c"});
  EXPECT_EQ(Start(), "OK");
  EXPECT_THAT(Index(true), ElementsAre("a:1 READY", "c:1 READY"));
  Restart({});
  EXPECT_EQ(Start(), "OK");
  EXPECT_THAT(Index(true), IsEmpty());
  Restart({"*"});
  EXPECT_EQ(Start(), "OK");
  EXPECT_EQ(Index(true).size(), 3u);
  Restart({"*", "a"});
  EXPECT_THAT(Start(), HasSubstr("'*' must be the ONLY startup model"));
}

TEST_F(AModelControl, SaysWhatOfTheStartFailedAndServesTheRest) {
  repositories_.Put(Plain("good"));
  repositories_.Put(Plain("bad"));
  factory_.Fail("bad:1", "broken");
  Restart({"good", "bad"});
  EXPECT_THAT(Start(), HasSubstr("load failed for model 'bad': version 1 is at UNAVAILABLE"));
  EXPECT_TRUE(IsReady("good"));
  Restart({"good", "missing"});
  EXPECT_EQ(Start(), "Internal: failed to load all models");
  EXPECT_TRUE(IsReady("good"));
  Restart({"*"});
  EXPECT_EQ(Start(), "Internal: failed to load all models");
  EXPECT_TRUE(IsReady("good"));
}

// --- Stopping ---

TEST_F(AModelControl, TakesNoOrdersOnceItStops) {
  repositories_.Put(Plain("m"));
  EXPECT_TRUE(control_->Stop(Passed()));
  EXPECT_EQ(Load("m"), "Unavailable: Server not ready");
  EXPECT_EQ(Unload("m"), "Unavailable: Server not ready");
  EXPECT_EQ(Start(), "Internal: failed to load all models");
}

TEST_F(AModelControl, WaitsForOperationsInProgressUntilTheDeadline) {
  repositories_.Put(Plain("m"));
  factory_.Hold("m:1");
  std::future<std::string> load = LoadInBackground("m");
  ASSERT_TRUE(events_.WaitFor("load m:1"));
  std::future<std::string> waiting = LoadInBackground("m");
  EXPECT_FALSE(control_->Stop(Passed()));
  // A caller that waits for another operation returns at once.
  EXPECT_EQ(waiting.get(), "Unavailable: Server not ready");
  std::future<bool> stop =
      std::async(std::launch::async, [this] { return control_->Stop(InAMinute()); });
  life_cycle_->CancelAllLoads();
  EXPECT_TRUE(stop.get());
  EXPECT_THAT(load.get(), HasSubstr("given up"));
}

}  // namespace
}  // namespace nereid::engine
