// SPDX-License-Identifier: Apache-2.0
#include "engine/life_cycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/testing/life_cycle_fixture.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

FakeModel Plain(const std::string& name = "m") { return {PlainConfig(name)}; }
FakeModel Ensemble(const std::string& name, const std::vector<std::string>& steps) {
  return {EnsembleConfig(name, steps)};
}

class ALifeCycle : public LifeCycleFixture {
 protected:
  using LifeCycleFixture::LifeCycleFixture;
};

// --- Loads ---

TEST_F(ALifeCycle, LoadsTheVersionsThatThePolicyAsksFor) {
  const std::map<int64_t, int64_t> versions = {{1, 1}, {2, 1}, {3, 1}};
  EXPECT_EQ(Load(Plain("latest").With(LatestVersions(2)).With(versions)), "OK");
  EXPECT_EQ(State("latest", 1), "");
  EXPECT_EQ(State("latest", 2), "READY");
  EXPECT_EQ(State("latest", 3), "READY");
  EXPECT_EQ(Load(Plain("all").With(AllVersions()).With(versions)), "OK");
  EXPECT_EQ(State("all", 1), "READY");
  EXPECT_EQ(Load(Plain("some").With(SpecificVersions({1, 9})).With(versions)), "OK");
  EXPECT_EQ(State("some", 1), "READY");
  EXPECT_EQ(State("some", 3), "");
  EXPECT_EQ(Pin("all")->version(), 3);
  EXPECT_EQ(Pin("all", "1")->version(), 1);
}

TEST_F(ALifeCycle, RefusesAModelWithoutVersions) {
  EXPECT_THAT(Load(Plain().With(SpecificVersions({9}))),
              HasSubstr("at least one version must be available under the version policy"));
  EXPECT_EQ(FindError("m"), "Not found: Request for unknown model: 'm' has no available versions");
  EXPECT_FALSE(life_cycle_->Table().all_ready());
  EXPECT_THAT(events_.all(), IsEmpty());
}

TEST_F(ALifeCycle, KeepsVersionsThatAreReadyWhenTheFolderHoldsNoneAnyMore) {
  ASSERT_EQ(Load(Plain()), "OK");
  EXPECT_THAT(Load(Plain().With(std::map<int64_t, int64_t>())), HasSubstr("at least one version"));
  EXPECT_EQ(State("m"), "READY");
}

TEST_F(ALifeCycle, GivesUpAllVersionsWhenOneFails) {
  factory_.Fail("m:2", "broken");
  EXPECT_EQ(Load(Plain().With(AllVersions()).With({{1, 1}, {2, 1}, {3, 1}})),
            "Invalid argument: version 2 is at UNAVAILABLE state: Internal: broken;");
  EXPECT_EQ(State("m", 2), "UNAVAILABLE Internal: broken");
  ASSERT_TRUE(WaitUntilGone("m:1"));
  ASSERT_TRUE(WaitUntilGone("m:3"));
  EXPECT_FALSE(Pin("m"));
  EXPECT_FALSE(life_cycle_->Table().all_ready());
}

TEST_F(ALifeCycle, TellsOfEachVersionThatFails) {
  factory_.Fail("m:1", "broken");
  factory_.Fail("m:2", "lost");
  EXPECT_EQ(Load(Plain().With(AllVersions()).With({{1, 1}, {2, 1}})),
            "Invalid argument: version 1 is at UNAVAILABLE state: Internal: broken;version 2 is at "
            "UNAVAILABLE state: Internal: lost;");
}

TEST_F(ALifeCycle, KeepsWhatIsReadyWhenALoadInItsPlaceFails) {
  ASSERT_EQ(Load(Plain()), "OK");
  const core::ModelHandle before = Pin("m");
  factory_.Fail("m:1", "broken");
  EXPECT_THAT(Load(Plain().With({{1, 2}})), HasSubstr("broken"));
  EXPECT_EQ(State("m"), "READY");
  EXPECT_EQ(&*Pin("m"), &*before);
  // A new version of the failed load is not kept.
  EXPECT_THAT(Load(Plain().With(AllVersions()).With({{1, 2}, {2, 2}})), HasSubstr("broken"));
  ASSERT_TRUE(WaitUntilGone("m:2"));
  EXPECT_EQ(&*Pin("m"), &*before);
}

TEST_F(ALifeCycle, LoadsSideBySide) {
  factory_.Hold("slow:1");
  std::future<std::string> slow = LoadInBackground(Plain("slow"));
  ASSERT_TRUE(events_.WaitFor("load slow:1"));
  EXPECT_EQ(State("slow"), "LOADING");
  EXPECT_EQ(FindError("slow", "1"),
            "Unavailable: Request for unknown model: 'slow' version 1 is not at ready state");
  EXPECT_EQ(Load(Plain("quick")), "OK");
  factory_.LetGo("slow:1");
  EXPECT_EQ(slow.get(), "OK");
}

TEST_F(ALifeCycle, AnswersForEachOfItsJobs) {
  factory_.Fail("b:1", "broken");
  std::vector<LoadJob> jobs;
  jobs.push_back(Job(Plain("a")));
  jobs.push_back(Job(Plain("b")));
  jobs.push_back(Job(Plain("c").With(SpecificVersions({9}))));
  jobs.push_back(Job(Plain("d")));
  const std::vector<base::Status> results = life_cycle_->Load(std::move(jobs));
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results[0].ok());
  EXPECT_THAT(results[1].ToString(), HasSubstr("broken"));
  EXPECT_THAT(results[2].ToString(), HasSubstr("at least one version"));
  EXPECT_TRUE(results[3].ok());
}

TEST_F(ALifeCycle, TellsWhatIsLoaded) {
  ASSERT_EQ(Load(Plain("a")), "OK");
  ASSERT_EQ(Load(Ensemble("e", {"a"})), "OK");
  const auto models = life_cycle_->LoadedModels();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].id.name, "a");
  EXPECT_EQ(models[0].load_seconds, 1.5);
  EXPECT_EQ(models[1].id.name, "e");
  EXPECT_EQ(models[1].load_seconds, 0);
  EXPECT_EQ(life_cycle_->LoadedModel("a", 1), models[0].model);
  EXPECT_EQ(life_cycle_->LoadedModel("a", 2), nullptr);
  EXPECT_EQ(life_cycle_->LoadedModel("aa", -1), nullptr);
}

// --- Retries ---

class ALifeCycleThatRetries : public LifeCycleFixture {
 protected:
  ALifeCycleThatRetries() : LifeCycleFixture({.load_retries = 2}) {}
};

TEST_F(ALifeCycleThatRetries, SucceedsWithTheLastTry) {
  factory_.Fail("m:1", "broken", 2);
  EXPECT_EQ(Load(Plain()), "OK");
  EXPECT_EQ(events_.Count("load m:1"), 3u);
}

TEST_F(ALifeCycleThatRetries, FailsWithTheReasonOfTheLastTry) {
  factory_.Fail("m:1", "broken", 3);
  EXPECT_THAT(Load(Plain()), HasSubstr("broken"));
  EXPECT_EQ(events_.Count("load m:1"), 3u);
}

TEST_F(ALifeCycleThatRetries, DoesNotTryAgainWhatIsNotWantedAnyMore) {
  factory_.Hold("m:1");
  std::future<std::string> load = LoadInBackground(Plain());
  ASSERT_TRUE(events_.WaitFor("load m:1"));
  life_cycle_->CancelLoads("m");
  EXPECT_THAT(load.get(), HasSubstr("given up"));
  EXPECT_EQ(events_.Count("load m:1"), 1u);
}

// --- Loads that replace versions ---

TEST_F(ALifeCycle, LeavesAloneWhatDidNotChange) {
  ASSERT_EQ(Load(Plain().With(AllVersions()).With({{1, 1}, {2, 1}})), "OK");
  events_.Take();
  EXPECT_EQ(Load(Plain().With(AllVersions()).With({{1, 1}, {2, 1}})), "OK");
  EXPECT_THAT(events_.Take(), IsEmpty());
  EXPECT_EQ(Load(Plain().With(AllVersions()).With({{1, 1}, {2, 5}, {3, 5}})), "OK");
  EXPECT_EQ(events_.Count("load m:1"), 1u);
  EXPECT_EQ(events_.Count("load m:2"), 2u);
  EXPECT_EQ(events_.Count("load m:3"), 1u);
}

TEST_F(ALifeCycle, LoadsAgainWhatIsConfiguredOtherwise) {
  ASSERT_EQ(Load(Plain()), "OK");
  FakeModel changed = Plain();
  changed.config.max_batch_size = 8;
  EXPECT_EQ(Load(changed), "OK");
  EXPECT_EQ(events_.Count("load m:1"), 2u);
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_EQ(Pin("m")->config().max_batch_size, 8);
}

TEST_F(ALifeCycle, ServesTheOldVersionUntilTheNewOneIsThere) {
  ASSERT_EQ(Load(Plain()), "OK");
  core::ModelHandle old = Pin("m");
  factory_.Hold("m:1");
  std::future<std::string> load = LoadInBackground(Plain().With({{1, 2}}));
  EXPECT_EQ(State("m"), "READY");
  EXPECT_EQ(&*Pin("m"), &*old);
  factory_.LetGo("m:1");
  ASSERT_EQ(load.get(), "OK");
  EXPECT_NE(&*Pin("m"), &*old);
  EXPECT_EQ(State("m"), "READY");
  // A request that uses the old version keeps it loaded.
  EXPECT_EQ(events_.Count("unload m:1"), 0u);
  old.Reset();
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_EQ(State("m"), "READY");
}

TEST_F(ALifeCycle, LetsVersionsGoThatThePolicyLeavesOut) {
  ASSERT_EQ(Load(Plain().With({{1, 1}})), "OK");
  ASSERT_EQ(Load(Plain().With({{1, 1}, {2, 2}})), "OK");
  EXPECT_EQ(State("m", 2), "READY");
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_FALSE(Pin("m", "1"));
  // This holds without anything to load, too.
  ASSERT_EQ(Load(Plain().With(AllVersions()).With({{1, 1}, {2, 2}})), "OK");
  events_.Take();
  ASSERT_EQ(Load(Plain().With(SpecificVersions({1})).With({{1, 1}, {2, 2}})), "OK");
  ASSERT_TRUE(WaitUntilGone("m:2"));
  EXPECT_EQ(events_.Count("load m:1"), 2u);
  EXPECT_EQ(State("m", 1), "READY");
}

TEST_F(ALifeCycle, IsReadyAgainWhenAVersionThatFailedIsNotAskedForAnyMore) {
  ASSERT_EQ(Load(Plain()), "OK");
  factory_.Fail("m:2", "broken");
  EXPECT_THAT(Load(Plain().With({{1, 1}, {2, 2}})), HasSubstr("broken"));
  EXPECT_FALSE(life_cycle_->Table().all_ready());
  EXPECT_EQ(Load(Plain()), "OK");
  EXPECT_EQ(State("m", 2), "UNAVAILABLE unloaded");
  EXPECT_TRUE(life_cycle_->Table().all_ready());
}

TEST_F(ALifeCycle, ChangesNothingButInstancesInPlace) {
  ASSERT_EQ(Load({InstancesConfig("m", 1)}), "OK");
  const core::ModelHandle before = Pin("m");
  EXPECT_EQ(Load({InstancesConfig("m", 3)}), "OK");
  EXPECT_EQ(&*Pin("m"), &*before);
  EXPECT_THAT(events_.all(), ElementsAre("load m:1", "change m:1"));
  EXPECT_EQ(life_cycle_->ConfigOf(*before)->instance_group.front().count, 3);
  // Clients that send back the configuration that they read change nothing.
  EXPECT_EQ(Load({InstancesConfig("m", 3)}), "OK");
  EXPECT_EQ(events_.all().size(), 2u);
}

TEST_F(ALifeCycle, KeepsItsInstancesWhenAChangeFails) {
  ASSERT_EQ(Load({InstancesConfig("m", 1)}), "OK");
  const core::ModelHandle before = Pin("m");
  factory_.Fail("m:1", "no memory");
  EXPECT_THAT(Load({InstancesConfig("m", 3)}), HasSubstr("no memory"));
  EXPECT_EQ(State("m"), "READY");
  EXPECT_EQ(life_cycle_->ConfigOf(*before)->instance_group.front().count, 1);
  factory_.Mend("m:1");
  EXPECT_EQ(Load({InstancesConfig("m", 3)}), "OK");
  EXPECT_EQ(life_cycle_->ConfigOf(*before)->instance_group.front().count, 3);
}

// --- Unloads ---

TEST_F(ALifeCycle, LetsRequestsEndBeforeAVersionGoes) {
  ASSERT_EQ(Load(Plain()), "OK");
  core::ModelHandle request = Pin("m");
  life_cycle_->Unload({"m"});
  EXPECT_EQ(State("m"), "UNLOADING");
  EXPECT_EQ(FindError("m", "1"),
            "Unavailable: Request for unknown model: 'm' version 1 is not at ready state");
  EXPECT_EQ(FindError("m"), "Not found: Request for unknown model: 'm' has no available versions");
  EXPECT_TRUE(life_cycle_->Table().all_ready());
  EXPECT_EQ(events_.Count("unload m:1"), 0u);
  request.Reset();
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_THAT(life_cycle_->UnloadAll(InAMinute()).work, IsEmpty());
  EXPECT_EQ(State("m"), "UNAVAILABLE unloaded");
}

TEST_F(ALifeCycle, ForgetsAFailureWithAnUnload) {
  factory_.Fail("m:1", "broken");
  EXPECT_THAT(Load(Plain()), HasSubstr("broken"));
  EXPECT_FALSE(life_cycle_->Table().all_ready());
  life_cycle_->Unload({"m", "never heard of"});
  EXPECT_EQ(State("m"), "UNAVAILABLE unloaded");
  EXPECT_TRUE(life_cycle_->Table().all_ready());
}

TEST_F(ALifeCycle, ForgetsAModelWithoutVersionsWithAnUnload) {
  EXPECT_THAT(Load(Plain().With(SpecificVersions({9}))), HasSubstr("at least one version"));
  ASSERT_EQ(Load(Plain("other")), "OK");
  EXPECT_FALSE(life_cycle_->Table().all_ready());
  life_cycle_->Unload({"m"});
  EXPECT_TRUE(life_cycle_->Table().all_ready());
  EXPECT_EQ(life_cycle_->Table().Record("m"), nullptr);
  EXPECT_EQ(FindError("m"), "Not found: Request for unknown model: 'm' is not found");
  EXPECT_EQ(Load(Plain()), "OK");
  EXPECT_TRUE(Pin("m"));
}

TEST_F(ALifeCycle, LoadsAgainWhileTheOldVersionStillHasRequests) {
  ASSERT_EQ(Load(Plain()), "OK");
  core::ModelHandle request = Pin("m");
  life_cycle_->Unload({"m"});
  EXPECT_EQ(Load(Plain()), "OK");
  EXPECT_EQ(State("m"), "READY");
  EXPECT_NE(&*Pin("m"), &*request);
  request.Reset();
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_EQ(State("m"), "READY");
}

// --- Cancelled loads ---

TEST_F(ALifeCycle, GivesUpTheLoadsOfOneName) {
  factory_.Hold("a:1");
  factory_.Hold("b:1");
  std::future<std::string> a = LoadInBackground(Plain("a"));
  std::future<std::string> b = LoadInBackground(Plain("b"));
  ASSERT_TRUE(events_.WaitFor("load a:1"));
  ASSERT_TRUE(events_.WaitFor("load b:1"));
  life_cycle_->CancelLoads("a");
  EXPECT_THAT(a.get(), HasSubstr("Cancelled: the load was given up, because the model was unloaded "
                                 "meanwhile or the server stops"));
  EXPECT_THAT(State("a"), HasSubstr("UNAVAILABLE Cancelled"));
  EXPECT_EQ(State("b"), "LOADING");
  factory_.LetGo("b:1");
  EXPECT_EQ(b.get(), "OK");
  // The cancellation does not affect the next load of that name.
  factory_.LetGo("a:1");
  EXPECT_EQ(Load(Plain("a")), "OK");
}

TEST_F(ALifeCycle, KeepsWhatIsReadyWhenALoadInItsPlaceIsGivenUp) {
  ASSERT_EQ(Load(Plain()), "OK");
  factory_.Hold("m:1");
  std::future<std::string> load = LoadInBackground({InstancesConfig("m", 2)});
  ASSERT_TRUE(events_.WaitFor("change m:1"));
  life_cycle_->CancelLoads("m");
  EXPECT_THAT(load.get(), HasSubstr("given up"));
  EXPECT_EQ(State("m"), "READY");
}

TEST_F(ALifeCycle, LoadsNothingAnyMoreOnceItStops) {
  ASSERT_EQ(Load(Plain("a")), "OK");
  life_cycle_->CancelAllLoads();
  EXPECT_THAT(Load(Plain("b")), HasSubstr("given up"));
  EXPECT_EQ(events_.Count("load b:1"), 0u);
  EXPECT_EQ(State("a"), "READY");
}

// --- Unloading everything ---

TEST_F(ALifeCycle, WaitsForRequestsUntilTheDeadline) {
  ASSERT_EQ(Load(Plain("a")), "OK");
  ASSERT_EQ(Load(Plain("b")), "OK");
  core::ModelHandle one = Pin("a");
  core::ModelHandle two = Pin("a");
  ASSERT_TRUE(life_cycle_->Find("b", "").ok());
  Unfinished left = life_cycle_->UnloadAll(Passed());
  ASSERT_TRUE(WaitUntilGone("b:1"));
  left = life_cycle_->UnloadAll(Passed());
  EXPECT_EQ(left.busy_versions, 1u);
  EXPECT_THAT(left.work, testing::Contains("Model 'a' (version 1) has 2 in-flight inferences"));
  one.Reset();
  two.Reset();
  EXPECT_TRUE(life_cycle_->UnloadAll(InAMinute()).empty());
}

TEST_F(ALifeCycle, ListsLoadsAndEndsThatTakeTooLong) {
  ASSERT_EQ(Load(Plain("ending")), "OK");
  factory_.HoldEnd("ending:1");
  factory_.Hold("loading:1");
  std::future<std::string> load = LoadInBackground(Plain("loading"));
  ASSERT_TRUE(events_.WaitFor("load loading:1"));
  EXPECT_THAT(life_cycle_->UnloadAll(Passed()).work,
              UnorderedElementsAre("Model 'ending' (version 1) is being unloaded",
                                   "Model 'loading' is being loaded"));
  factory_.LetGo("ending:1");
  factory_.LetGo("loading:1");
  // A version that is loaded too late is not published.
  EXPECT_THAT(load.get(), HasSubstr("Server exiting"));
  EXPECT_FALSE(Pin("loading"));
}

TEST_F(ALifeCycle, EndsWhileInstancesAreChanged) {
  ASSERT_EQ(Load({InstancesConfig("m", 1)}), "OK");
  factory_.Hold("m:1");
  std::future<std::string> load = LoadInBackground({InstancesConfig("m", 2)});
  ASSERT_TRUE(events_.WaitFor("change m:1"));
  std::future<Unfinished> end =
      std::async(std::launch::async, [this] { return life_cycle_->UnloadAll(InAMinute()); });
  factory_.LetGo("m:1");
  EXPECT_THAT(end.get().work, IsEmpty());
  static_cast<void>(load.get());  // either outcome is possible
}

TEST_F(ALifeCycle, EndsAsSoonAsTheLastLoadHasEnded) {
  for (int i = 0; i < 50; ++i) {
    LifeCycle life_cycle(factory_, {});
    const std::string name = "m" + std::to_string(i);
    factory_.Hold(name + ":1");
    std::future<base::Status> load = std::async(std::launch::async, [&] {
      std::vector<LoadJob> jobs;
      jobs.push_back(Job(Plain(name)));
      return life_cycle.Load(std::move(jobs)).front();
    });
    ASSERT_TRUE(events_.WaitFor("load " + name + ":1"));
    std::future<Unfinished> end =
        std::async(std::launch::async, [&] { return life_cycle.UnloadAll(InAMinute()); });
    factory_.LetGo(name + ":1");
    ASSERT_THAT(end.get().work, IsEmpty());
    static_cast<void>(load.get());  // it may have completed before the cancellation
  }
}

// --- The log ---

class ALifeCycleThatPolls : public LifeCycleFixture {
 protected:
  ALifeCycleThatPolls() : LifeCycleFixture({.repeats_loads = true}) {}
};

TEST_F(ALifeCycleThatPolls, TellsAFailureOnceUntilSomethingAboutItIsNew) {
  const CapturedLog log;
  factory_.Fail("m:1", "broken");
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Load(Plain()), HasSubstr("broken"));
  EXPECT_EQ(log.Count("failed to load 'm' version 1: Internal: broken"), 1u);
  EXPECT_EQ(log.Count("loading: m:1"), 1u);
  // The reason is new.
  factory_.Fail("m:1", "lost");
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Load(Plain()), HasSubstr("lost"));
  EXPECT_EQ(log.Count("failed to load 'm' version 1: Internal: lost"), 1u);
  // The files are new.
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Load(Plain().With({{1, 2}})), HasSubstr("lost"));
  EXPECT_EQ(log.Count("failed to load 'm' version 1: Internal: lost"), 2u);
  EXPECT_EQ(log.Count("loading: m:1"), 2u);
  // A success in between.
  factory_.Mend("m:1");
  EXPECT_EQ(Load(Plain().With({{1, 2}})), "OK");
  EXPECT_EQ(log.Count("successfully loaded 'm'"), 1u);
}

TEST_F(ALifeCycleThatPolls, TellsOnceThatAModelHasNoVersions) {
  const CapturedLog log;
  for (int i = 0; i < 3; ++i) Load(Plain().With(SpecificVersions({9})));
  EXPECT_EQ(log.Count("failed to load model 'm': at least one version"), 1u);
}

TEST_F(ALifeCycle, TellsEachFailureOfALoadThatSomebodyAskedFor) {
  const CapturedLog log;
  factory_.Fail("m:1", "broken");
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Load(Plain()), HasSubstr("broken"));
  EXPECT_EQ(log.Count("failed to load 'm' version 1: Internal: broken"), 3u);
}

// --- Owners of files ---

TEST_F(ALifeCycle, TellsTheFilesHowTheLoadWent) {
  ASSERT_EQ(Load(Plain().Watched().With(AllVersions()).With({{1, 1}, {2, 1}})), "OK");
  EXPECT_EQ(events_.Count("loaded m"), 1u);
  life_cycle_->Unload({"m"});
  ASSERT_TRUE(events_.WaitFor("gone m"));
  EXPECT_EQ(events_.Count("unloading m"), 1u);
  EXPECT_EQ(events_.Count("failed m"), 0u);
  const std::vector<std::string> all = events_.all();
  EXPECT_EQ(all.back(), "gone m");
  EXPECT_LT(std::ranges::find(all, "unloading m"), std::ranges::find(all, "unload m:1"));
}

TEST_F(ALifeCycle, TellsTheFilesThatTheLoadFailed) {
  factory_.Fail("m:2", "broken");
  EXPECT_THAT(Load(Plain().Watched().With(AllVersions()).With({{1, 1}, {2, 1}})),
              HasSubstr("broken"));
  ASSERT_TRUE(events_.WaitFor("gone m"));
  EXPECT_EQ(events_.Count("failed m"), 1u);
  EXPECT_EQ(events_.Count("loaded m"), 0u);
  EXPECT_EQ(events_.Count("unloading m"), 0u);
}

TEST_F(ALifeCycle, TellsOfTheEndOfTheOldFilesBeforeTheNewOnesAreLoaded) {
  ASSERT_EQ(Load(Plain().Watched()), "OK");
  events_.Take();
  ASSERT_EQ(Load(Plain().Watched().With({{1, 2}})), "OK");
  ASSERT_TRUE(WaitUntilGone("m:1"));
  ASSERT_TRUE(events_.WaitFor("gone m"));
  EXPECT_THAT(events_.Take(), testing::IsSupersetOf(
                                  {"load m:1", "unloading m", "loaded m", "unload m:1", "gone m"}));
  const std::vector<std::string> all = events_.all();
  EXPECT_LT(std::ranges::find(all, "unloading m") - all.begin(),
            std::find(all.rbegin(), all.rend(), "loaded m").base() - all.begin());
}

TEST_F(ALifeCycle, KeepsFilesThatAnotherVersionStillUses) {
  FakeModel model = Plain().Watched().With(AllVersions()).With({{1, 1}, {2, 1}});
  ASSERT_EQ(Load(model), "OK");
  // Version 1 is unloaded; version 2 stays with the files of the first load.
  ASSERT_EQ(Load(model.With(SpecificVersions({2}))), "OK");
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_EQ(events_.Count("unloading m"), 0u);
  life_cycle_->Unload({"m"});
  ASSERT_TRUE(events_.WaitFor("gone m"));
  EXPECT_EQ(events_.Count("unloading m"), 1u);
}

TEST_F(ALifeCycle, TellsBothFilesOfAVersionWhoseInstancesWereChanged) {
  ASSERT_EQ(Load(FakeModel(InstancesConfig("m", 1)).Watched()), "OK");
  ASSERT_EQ(Load(FakeModel(InstancesConfig("m", 2)).Watched()), "OK");
  EXPECT_EQ(events_.Count("loaded m"), 2u);
  EXPECT_EQ(events_.Count("unloading m"), 0u);
  life_cycle_->Unload({"m"});
  ASSERT_TRUE(WaitUntilGone("m:1"));
  EXPECT_EQ(events_.Count("unloading m"), 2u);
}

// --- Namespaces ---

class ALifeCycleWithNamespaces : public LifeCycleFixture {
 protected:
  ALifeCycleWithNamespaces() : LifeCycleFixture({.has_namespaces = true}) {}
};

TEST_F(ALifeCycleWithNamespaces, ServesAModelByItsNameAloneWhenItIsTheOnlyOneNamedSo) {
  std::vector<LoadJob> jobs;
  for (const char* name_space : {"a", "b"}) {
    jobs.push_back({.source = std::make_shared<repository::ModelSource>(
                        MakeSource(Plain(), events_, name_space, name_space)),
                    .parts = {}});
  }
  for (const base::Status& status : life_cycle_->Load(std::move(jobs))) EXPECT_TRUE(status.ok());
  EXPECT_THAT(FindError("m"), HasSubstr("not found in global map"));
  life_cycle_->SetNamed({ModelId("a", "m"), ModelId("b", "m")});
  EXPECT_THAT(FindError("m"), HasSubstr("There are 2 identifiers of model 'm'"));
  life_cycle_->SetNamed({ModelId("b", "m")});
  EXPECT_EQ(&*Pin("m"), life_cycle_->LoadedModel({"b", "m"}, -1).get());
  EXPECT_EQ(&*PinStep("a::m"), life_cycle_->LoadedModel({"a", "m"}, -1).get());
}

// --- Rules for versions ---

FakeModel WithVersions(const std::map<std::string, std::string>& parameters = {}) {
  FakeModel model = Plain();
  model.config.parameters.insert(parameters.begin(), parameters.end());
  return model.With(AllVersions()).With({{1, 1}, {2, 1}});
}

service::TrafficChange LabelChange(const std::string& label, std::optional<int64_t> version) {
  service::TrafficChange change;
  change.labels[label] = version;
  return change;
}

TEST_F(ALifeCycle, MovesLabelsWhileItRuns) {
  ASSERT_EQ(Load(WithVersions({{"version_labels", "stable=1"}})), "OK");
  EXPECT_EQ(Pin("m", "stable")->version(), 1);
  EXPECT_TRUE(life_cycle_->ChangeTraffic("m", LabelChange("stable", 2)).ok());
  EXPECT_EQ(Pin("m", "stable")->version(), 2);
  EXPECT_TRUE(life_cycle_->ChangeTraffic("m", LabelChange("stable", std::nullopt)).ok());
  EXPECT_THAT(FindError("m", "stable"), HasSubstr("has no version label 'stable'; labels: none"));
}

TEST_F(ALifeCycle, RefusesRulesForVersionsThatAreNotReady) {
  ASSERT_EQ(Load(WithVersions()), "OK");
  EXPECT_EQ(life_cycle_->ChangeTraffic("m", LabelChange("stable", 3)).message(),
            "model 'm': the version of label 'stable' is 3, which is not at ready state; versions "
            "that are: 1, 2");
  EXPECT_EQ(life_cycle_->ChangeTraffic("x", LabelChange("stable", 1)).message(),
            "Request for unknown model: 'x' is not found");
  service::TrafficChange shadow;
  shadow.shadow.emplace().model = "n";
  EXPECT_EQ(life_cycle_->ChangeTraffic("m", shadow).message(),
            "model 'm': the shadow: Request for unknown model: 'n' is not found");
}

TEST_F(ALifeCycle, AnUnloadForgetsChangesOfRules) {
  ASSERT_EQ(Load(WithVersions({{"version_labels", "stable=1"}})), "OK");
  EXPECT_TRUE(life_cycle_->ChangeTraffic("m", LabelChange("stable", 2)).ok());
  ASSERT_EQ(Load(WithVersions({{"version_labels", "stable=1"}})), "OK");
  EXPECT_EQ(Pin("m", "stable")->version(), 2);
  life_cycle_->Unload({"m"});
  ASSERT_EQ(Load(WithVersions({{"version_labels", "stable=1"}})), "OK");
  EXPECT_EQ(Pin("m", "stable")->version(), 1);
}

TEST_F(ALifeCycle, AnotherConfigurationReplacesChangesOfRules) {
  ASSERT_EQ(Load(WithVersions({{"version_labels", "stable=1"}})), "OK");
  EXPECT_TRUE(life_cycle_->ChangeTraffic("m", LabelChange("next", 2)).ok());
  ASSERT_EQ(Load(WithVersions({{"version_labels", "stable=2"}})), "OK");
  EXPECT_EQ(Pin("m", "stable")->version(), 2);
  EXPECT_THAT(FindError("m", "next"), HasSubstr("has no version label 'next'; labels: 'stable'"));
}

}  // namespace
}  // namespace nereid::engine
