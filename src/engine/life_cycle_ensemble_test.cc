// SPDX-License-Identifier: Apache-2.0
// Tests the guarantee for ensembles: a request that has begun finds the models of all its steps,
// whatever is loaded or unloaded in the meantime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "engine/testing/life_cycle_fixture.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FakeModel Plain(const std::string& name) { return {PlainConfig(name)}; }
FakeModel Ensemble(const std::string& name, const std::vector<std::string>& steps) {
  return {EnsembleConfig(name, steps)};
}

// An ensemble "e" of "first" and "last", with a request in progress.
class AnEnsemble : public LifeCycleFixture {
 protected:
  void SetUp() override {
    ASSERT_EQ(Load(Plain("first")), "OK");
    ASSERT_EQ(Load(Plain("last")), "OK");
    ASSERT_EQ(Load(Ensemble("e", {"first", "last"})), "OK");
    request_ = Pin("e");
    ASSERT_TRUE(request_);
    events_.Take();
  }
  void TearDown() override {
    request_.Reset();
    LifeCycleFixture::TearDown();
  }

  core::ModelHandle request_;
};

TEST_F(AnEnsemble, KeepsItsPartsThatAreUnloadedWithItUntilItsRequestsHaveEnded) {
  life_cycle_->Unload({"e", "first", "last"});
  EXPECT_FALSE(Pin("e"));
  EXPECT_FALSE(Pin("first"));
  EXPECT_EQ(State("first"), "UNLOADING");
  core::ModelHandle step = PinStep("first");
  EXPECT_TRUE(step);
  EXPECT_TRUE(PinStep("last", 1));
  request_.Reset();
  // A step of the request keeps its model longer.
  ASSERT_TRUE(WaitUntilGone("last:1"));
  ASSERT_TRUE(WaitUntilGone("e:1"));
  EXPECT_EQ(events_.Count("unload first:1"), 0u);
  step.Reset();
  ASSERT_TRUE(WaitUntilGone("first:1"));
  EXPECT_FALSE(PinStep("first"));
}

TEST_F(AnEnsemble, KeepsItsPartsThatAreUnloadedAfterItUntilItsRequestsHaveEnded) {
  life_cycle_->Unload({"e"});
  life_cycle_->Unload({"last"});
  EXPECT_FALSE(Pin("last"));
  EXPECT_EQ(State("last"), "UNLOADING");
  EXPECT_TRUE(PinStep("last"));
  request_.Reset();
  ASSERT_TRUE(WaitUntilGone("last:1"));
  EXPECT_FALSE(PinStep("last"));
  EXPECT_EQ(State("first"), "READY");
}

// Files that run a hook when their model is unloaded.
class FilesWithAHook final : public repository::ModelFiles {
 public:
  explicit FilesWithAHook(std::function<void()> hook) : hook_(std::move(hook)) {}
  void OnUnloading() override { hook_(); }

 private:
  const std::function<void()> hook_;
};

TEST_F(AnEnsemble, KeepsAPartThatIsUnloadedBeforeItsOwnUnloadIsThrough) {
  LoadJob job = Job(Ensemble("slow", {"last"}));
  auto source = std::make_shared<repository::ModelSource>(*job.source);
  source->files = std::make_shared<FilesWithAHook>([this] { life_cycle_->Unload({"last"}); });
  job.source = source;
  std::vector<LoadJob> jobs;
  jobs.push_back(std::move(job));
  ASSERT_TRUE(life_cycle_->Load(std::move(jobs)).front().ok());
  core::ModelHandle request = Pin("slow");
  request_.Reset();
  life_cycle_->Unload({"e", "slow"});
  EXPECT_EQ(State("last"), "UNLOADING");
  ASSERT_TRUE(WaitUntilGone("e:1"));
  EXPECT_TRUE(PinStep("last"));
  request.Reset();
  ASSERT_TRUE(WaitUntilGone("last:1"));
}

TEST_F(AnEnsemble, FindsAPartThatIsBeingLoadedAgain) {
  life_cycle_->Unload({"e", "last"});
  factory_.Hold("last:1");
  std::future<std::string> load = LoadInBackground(Plain("last"));
  ASSERT_TRUE(events_.WaitFor("load last:1"));
  EXPECT_EQ(State("last"), "LOADING");
  EXPECT_FALSE(Pin("last"));
  EXPECT_TRUE(PinStep("last"));
  EXPECT_TRUE(PinStep("last", 1));
  factory_.LetGo("last:1");
  ASSERT_EQ(load.get(), "OK");
  EXPECT_EQ(&*PinStep("last"), &*Pin("last"));
  request_.Reset();
  ASSERT_TRUE(WaitUntilGone("last:1"));
  EXPECT_EQ(State("last"), "READY");
}

TEST_F(AnEnsemble, FindsAPartWhoseNextLoadFailed) {
  life_cycle_->Unload({"e", "last"});
  factory_.Fail("last:1", "broken");
  EXPECT_THAT(Load(Plain("last")), HasSubstr("broken"));
  EXPECT_EQ(State("last"), "UNAVAILABLE Internal: broken");
  EXPECT_TRUE(PinStep("last"));
  request_.Reset();
  ASSERT_TRUE(WaitUntilGone("last:1"));
  EXPECT_FALSE(PinStep("last"));
  EXPECT_EQ(State("last"), "UNAVAILABLE Internal: broken");
}

TEST_F(AnEnsemble, GoesOnWithTheNewVersionOfAPart) {
  core::ModelHandle old = PinStep("last");
  ASSERT_EQ(Load(Plain("last").With({{1, 2}})), "OK");
  core::ModelHandle step = PinStep("last");
  EXPECT_NE(&*step, &*old);
  // A replaced version is torn down after its own last request, because no further step will use
  // it.
  old.Reset();
  ASSERT_TRUE(WaitUntilGone("last:1"));
  EXPECT_TRUE(request_);
}

TEST_F(AnEnsemble, KeepsTheVersionOfAPartThatAStepNames) {
  ASSERT_EQ(Load(Plain("p").With(AllVersions()).With({{1, 1}, {2, 1}})), "OK");
  ASSERT_EQ(Load(Ensemble("named", {"p:1"})), "OK");
  core::ModelHandle request = Pin("named");
  life_cycle_->Unload({"named"});
  life_cycle_->Unload({"p"});
  EXPECT_EQ(PinStep("p", 1)->version(), 1);
  EXPECT_EQ(PinStep("p")->version(), 2);
  request.Reset();
  ASSERT_TRUE(WaitUntilGone("p:1"));
  ASSERT_TRUE(WaitUntilGone("p:2"));
}

TEST_F(AnEnsemble, WithinAnotherOneKeepsAllBelow) {
  ASSERT_EQ(Load(Ensemble("outer", {"e", "first"})), "OK");
  core::ModelHandle outer = Pin("outer");
  request_.Reset();
  events_.Take();
  life_cycle_->Unload({"first", "last", "e", "outer"});
  EXPECT_TRUE(PinStep("e"));
  EXPECT_TRUE(PinStep("last"));
  // The inner ensemble has a request while the outer one executes that step.
  core::ModelHandle inner = PinStep("e");
  outer.Reset();
  ASSERT_TRUE(WaitUntilGone("outer:1"));
  EXPECT_TRUE(PinStep("last"));
  inner.Reset();
  ASSERT_TRUE(WaitUntilGone("e:1"));
  ASSERT_TRUE(WaitUntilGone("first:1"));
  ASSERT_TRUE(WaitUntilGone("last:1"));
}

TEST_F(AnEnsemble, SharesPartsWithAnother) {
  ASSERT_EQ(Load(Ensemble("other", {"last"})), "OK");
  core::ModelHandle other = Pin("other");
  life_cycle_->Unload({"e"});
  life_cycle_->Unload({"other"});
  life_cycle_->Unload({"last"});
  request_.Reset();
  ASSERT_TRUE(WaitUntilGone("e:1"));
  EXPECT_TRUE(PinStep("last"));
  other.Reset();
  ASSERT_TRUE(WaitUntilGone("last:1"));
}

TEST_F(AnEnsemble, IsReplacedWhileItsRequestsGoOn) {
  ASSERT_EQ(Load(Ensemble("e", {"last", "first"})), "OK");
  EXPECT_NE(&*Pin("e"), &*request_);
  life_cycle_->Unload({"e", "first", "last"});
  ASSERT_TRUE(WaitUntilGone("e:1"));
  EXPECT_TRUE(PinStep("first"));
  EXPECT_TRUE(PinStep("last"));
  request_.Reset();
  ASSERT_TRUE(WaitUntilGone("first:1"));
}

TEST_F(AnEnsemble, ThatFailsToLoadKeepsNoPartsBack) {
  factory_.Fail("bad:1", "broken");
  EXPECT_THAT(Load(Ensemble("bad", {"last"})), HasSubstr("broken"));
  request_.Reset();
  life_cycle_->Unload({"e"});
  ASSERT_TRUE(WaitUntilGone("e:1"));
  life_cycle_->Unload({"last"});
  ASSERT_TRUE(WaitUntilGone("last:1"));
}

TEST_F(AnEnsemble, HoldsUpAStopWithItsRequestsOnly) {
  // The ensemble's parts have no requests, but wait for the ensemble.
  const Unfinished left = life_cycle_->UnloadAll(Passed());
  EXPECT_THAT(left.work, ElementsAre("Model 'e' (version 1) has 1 in-flight inferences"));
  EXPECT_EQ(left.busy_versions, 1u);
  request_.Reset();
}

TEST_F(AnEnsemble, HasItsModelsUntilTheEndOfItsRequestsAlsoWhenItIsUnloaded) {
  life_cycle_->Unload({"e"});
  EXPECT_FALSE(life_cycle_->HoldIdle({"last"}));
  EXPECT_TRUE(PinStep("last"));
  request_.Reset();
  ASSERT_TRUE(WaitUntilGone("e:1"));
  EXPECT_TRUE(life_cycle_->HoldIdle({"last"}));
}

TEST_F(AnEnsemble, HasTheSamePartsUntilOneIsReplaced) {
  const auto has_same_parts = [this](const std::vector<std::string>& steps) {
    return life_cycle_->HasSameParts(Job(Ensemble("e", steps)));
  };
  EXPECT_TRUE(has_same_parts({"first", "last"}));
  EXPECT_FALSE(has_same_parts({"last", "first"}));
  EXPECT_FALSE(life_cycle_->HasSameParts(Job(Ensemble("f", {"first", "last"}))));
  factory_.Fail("last:1", "broken", 1);
  EXPECT_THAT(Load(Plain("last").With({{1, 2}})), HasSubstr("broken"));
  EXPECT_TRUE(has_same_parts({"first", "last"}));
  EXPECT_EQ(Load(Plain("last").With({{1, 2}})), "OK");
  EXPECT_FALSE(has_same_parts({"first", "last"}));
}

TEST_F(AnEnsemble, IsMadeAnewWithEachLoad) {
  EXPECT_EQ(Load(Ensemble("e", {"first", "last"})), "OK");
  EXPECT_EQ(events_.Count("load e:1"), 2u);
}

// "z" contains "middle", and that "a": neither the names nor the order of loading tell.
TEST_F(LifeCycleFixture, FindsTheModelsOfStepsWhileItFindsOutWhetherTheirEnsembleIsIdle) {
  const std::set<ModelId> ids = {"a", "middle", "z"};
  std::vector<std::string> asked;
  bool is_found = true;
  factory_.SetCountSequences([&](const std::string& version) {
    asked.push_back(version);
    // As a step of a request to `z` might, at that moment.
    for (const char* name : {"a", "middle"}) is_found = is_found && PinStep(name);
    return 0;
  });
  ASSERT_EQ(Load(Plain("a")), "OK");
  ASSERT_EQ(Load(Ensemble("middle", {"a"})), "OK");
  ASSERT_EQ(Load(Ensemble("z", {"middle"})), "OK");
  core::ModelHandle request = Pin("z");
  EXPECT_FALSE(life_cycle_->HoldIdle(ids));
  EXPECT_TRUE(is_found);
  EXPECT_TRUE(PinStep("a"));
  request.Reset();
  asked.clear();
  EXPECT_TRUE(life_cycle_->HoldIdle(ids));
  EXPECT_THAT(asked, ElementsAre("z:1", "middle:1", "a:1"));
}

}  // namespace
}  // namespace nereid::engine
