// SPDX-License-Identifier: Apache-2.0
#include "engine/version_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const VersionKey kOne{"m", 1};
const VersionKey kTwo{"m", 2};

std::shared_ptr<core::Model> MakeModel() { return core::MakeFakeModel(0, {1}); }

// The states and the table that is made after each change.
class States : public testing::Test {
 protected:
  const ModelTable& Table() {
    table_ = states_.MakeTable(ModelTable(), {"m"});
    return *table_;
  }
  // Returns "READY", "UNAVAILABLE unloaded", ...; with "+" if steps of ensembles can still pin a
  // model.
  std::string Of(const VersionKey& key) {
    const ModelRecord* const record = Table().Record(key.id);
    if (record == nullptr || !record->versions.contains(key.version)) return "";
    const VersionRecord& version = record->versions.at(key.version);
    return std::string(StateName(version.state)) +
           (version.reason.empty() ? "" : " " + version.reason) +
           (version.model == nullptr ? "" : "+");
  }

  VersionStates states_{false};
  std::shared_ptr<const ModelTable> table_;
  const std::shared_ptr<core::Model> old_ = MakeModel();
  const std::shared_ptr<core::Model> new_ = MakeModel();
};

TEST_F(States, AreThoseOfALifeFromLoadToUnload) {
  EXPECT_EQ(Of(kOne), "");
  states_.SetLoading(kOne);
  EXPECT_EQ(Of(kOne), "LOADING");
  states_.SetReady(kOne, old_);
  EXPECT_EQ(Of(kOne), "READY+");
  states_.SetUnloading(kOne, old_);
  EXPECT_EQ(Of(kOne), "UNLOADING+");
  EXPECT_TRUE(states_.SetGone(kOne, *old_));
  EXPECT_EQ(Of(kOne), "UNAVAILABLE unloaded");
}

TEST_F(States, SayWhyALoadFailedUntilTheNextOne) {
  states_.SetLoading(kOne);
  states_.SetFailed(kOne, "broken");
  EXPECT_EQ(Of(kOne), "UNAVAILABLE broken");
  EXPECT_FALSE(Table().all_ready());
  states_.SetLoading(kOne);
  EXPECT_EQ(Of(kOne), "LOADING");
}

TEST_F(States, StayReadyWhileAnotherVersionIsLoadedInThePlace) {
  states_.SetReady(kOne, old_);
  states_.SetLoading(kOne);
  EXPECT_EQ(Of(kOne), "READY+");
  states_.SetFailed(kOne, "broken");
  EXPECT_EQ(Of(kOne), "READY+");
  states_.SetRolledBack(kOne, new_);
  EXPECT_EQ(Of(kOne), "READY+");
  EXPECT_FALSE(states_.SetGone(kOne, *new_));
  EXPECT_EQ(Table().Record("m")->versions.at(1).model, old_);
}

TEST_F(States, AreNotTouchedByTheEndOfWhatWasReplaced) {
  states_.SetReady(kOne, old_);
  states_.SetReady(kOne, new_);
  EXPECT_FALSE(states_.SetGone(kOne, *old_));
  EXPECT_EQ(Of(kOne), "READY+");
}

TEST_F(States, OfARolledBackVersionEndAsUnloaded) {
  states_.SetLoading(kOne);
  states_.SetLoading(kTwo);
  states_.SetFailed(kTwo, "broken");
  states_.SetRolledBack(kOne, new_);
  EXPECT_EQ(Of(kOne), "UNLOADING+");
  EXPECT_TRUE(states_.SetGone(kOne, *new_));
  EXPECT_EQ(Of(kOne), "UNAVAILABLE unloaded");
  EXPECT_EQ(Of(kTwo), "UNAVAILABLE broken");
}

TEST_F(States, RememberTheOldModelForStepsWhileANewOneIsLoaded) {
  states_.SetReady(kOne, old_);
  states_.SetUnloading(kOne, old_);
  states_.SetLoading(kOne);
  EXPECT_EQ(Of(kOne), "LOADING+");
  EXPECT_FALSE(Table().Find("m", "").ok());
  EXPECT_EQ(&*Table().FindForStep("m", -1).value(), old_.get());
  EXPECT_TRUE(states_.SetGone(kOne, *old_));
  EXPECT_EQ(Of(kOne), "LOADING");
  states_.SetReady(kOne, new_);
  EXPECT_EQ(Of(kOne), "READY+");
}

TEST_F(States, RememberTheOldModelForStepsWhenTheNewLoadFails) {
  states_.SetUnloading(kOne, old_);
  states_.SetLoading(kOne);
  states_.SetFailed(kOne, "broken");
  EXPECT_EQ(Of(kOne), "UNAVAILABLE broken+");
  EXPECT_TRUE(states_.SetGone(kOne, *old_));
  EXPECT_EQ(Of(kOne), "UNAVAILABLE broken");

  states_.SetUnloading(kTwo, old_);
  states_.SetLoading(kTwo);
  states_.SetRolledBack(kTwo, new_);
  EXPECT_EQ(&*Table().FindForStep("m", 2).value(), old_.get());
  EXPECT_FALSE(states_.SetGone(kTwo, *new_));
  EXPECT_TRUE(states_.SetGone(kTwo, *old_));
  EXPECT_EQ(Of(kTwo), "UNAVAILABLE unloaded");
}

TEST_F(States, ForgetTheFailureOfWhatIsNotWantedAnyMore) {
  states_.SetReady(kOne, old_);
  states_.SetLoading(kTwo);
  states_.SetFailed(kTwo, "broken");
  EXPECT_THAT(states_.VersionsOf("m"), ElementsAre(1, 2));
  EXPECT_THAT(states_.VersionsOf("other"), IsEmpty());
  states_.SetUnwanted(kOne);
  states_.SetUnwanted(kTwo);
  EXPECT_EQ(Of(kOne), "READY+");
  EXPECT_EQ(Of(kTwo), "UNAVAILABLE unloaded");
  EXPECT_TRUE(Table().all_ready());
}

TEST_F(States, KnowModelsThatWereTriedInVain) {
  states_.AddModel("m");
  EXPECT_NE(Table().Record("m"), nullptr);
  EXPECT_FALSE(Table().all_ready());
}

TEST_F(States, ForgetAModelThatNeverHadAVersion) {
  states_.AddModel("m");
  states_.AddModel("n");
  states_.SetReady({"other", 1}, new_);
  const auto before = states_.MakeTable(ModelTable(), {"m", "n", "other"});
  states_.RemoveIfEmpty("m");
  states_.RemoveIfEmpty("other");
  states_.RemoveIfEmpty("unknown");
  const auto after = states_.MakeTable(*before, {"m", "other", "unknown"});
  EXPECT_EQ(after->Record("m"), nullptr);
  EXPECT_TRUE(after->Find("other", "").ok());
  // The other one is still missed.
  EXPECT_NE(after->Record("n"), nullptr);
  EXPECT_FALSE(after->all_ready());
  states_.RemoveIfEmpty("n");
  EXPECT_TRUE(states_.MakeTable(*after, {"n"})->all_ready());
}

TEST_F(States, OfOtherModelsComeFromTheTableBefore) {
  states_.SetReady(kOne, old_);
  states_.SetReady({"other", 1}, new_);
  const auto first = states_.MakeTable(ModelTable(), {"m", "other", "unknown"});
  states_.SetUnloading(kOne, old_);
  states_.SetUnloading({"other", 1}, new_);
  const auto second = states_.MakeTable(*first, {"m"});
  EXPECT_FALSE(second->Find("m", "").ok());
  EXPECT_TRUE(second->Find("other", "").ok());
  EXPECT_TRUE(first->Find("m", "").ok());
}

TEST(StatesWithNamespaces, MeanTheModelsThatHaveNames) {
  VersionStates states(true);
  const repository::ModelId a("a", "m");
  states.SetReady({a, 1}, MakeModel());
  EXPECT_FALSE(states.MakeTable(ModelTable(), {a})->Find("m", "").ok());
  EXPECT_TRUE(states.SetNamed({a}));
  EXPECT_FALSE(states.SetNamed({a}));
  EXPECT_TRUE(states.MakeTable(ModelTable(), {a})->Find("m", "").ok());
}

TEST_F(States, NeedNoNamesWithoutNamespaces) { EXPECT_FALSE(states_.SetNamed({"m"})); }

}  // namespace
}  // namespace nereid::engine
