// SPDX-License-Identifier: Apache-2.0
#include "engine/model_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::engine {
namespace {

using repository::ModelId;
using testing::ElementsAre;
using testing::IsEmpty;

// A listing of the repositories, a model table, and the index of both.
class AnIndex : public testing::Test {
 protected:
  void Put(const ModelId& id) { listing_.places[id] = {.id = id}; }
  void SetState(const ModelId& id, int64_t version, VersionState state, std::string reason = "") {
    const std::shared_ptr<core::Model> model = core::MakeFakeModel(0, {1});
    const bool has_model = state == VersionState::kReady || state == VersionState::kUnloading;
    records_[id].versions[version] = {
        .state = state, .reason = std::move(reason), .model = has_model ? model : nullptr};
  }
  std::vector<std::string> Lines(bool only_ready = false) const {
    std::vector<std::string> lines;
    for (const auto& entry : MakeIndex(listing_, ModelTable(records_), reasons_, only_ready)) {
      lines.push_back(entry.name + "|" + entry.version + "|" + entry.state + "|" + entry.reason);
    }
    return lines;
  }

  repository::Listing listing_;
  ModelRecords records_;
  std::map<ModelId, std::string> reasons_;
};

TEST_F(AnIndex, ListsAModelThatWasNeverLoadedByItsNameAlone) {
  Put("m");
  EXPECT_THAT(Lines(), ElementsAre("m|||"));
  EXPECT_THAT(Lines(true), IsEmpty());
}

TEST_F(AnIndex, SaysWhyAModelIsNotLoaded) {
  Put("m");
  reasons_["m"] = "no backend";
  EXPECT_THAT(Lines(), ElementsAre("m||UNAVAILABLE|no backend"));
  reasons_["m"] = "";
  EXPECT_THAT(Lines(), ElementsAre("m|||"));
}

TEST_F(AnIndex, ListsEachVersionWithItsState) {
  Put("m");
  reasons_["m"] = "not told where versions have their own";
  SetState("m", 1, VersionState::kUnavailable, "broken");
  SetState("m", 2, VersionState::kReady);
  SetState("m", 3, VersionState::kLoading);
  SetState("m", 10, VersionState::kUnloading);
  EXPECT_THAT(Lines(), ElementsAre("m|1|UNAVAILABLE|broken", "m|2|READY|", "m|3|LOADING|",
                                   "m|10|UNLOADING|"));
  EXPECT_THAT(Lines(true), ElementsAre("m|2|READY|"));
}

TEST_F(AnIndex, SaysWhyAllVersionsOfAModelWereUnloaded) {
  Put("m");
  SetState("m", 1, VersionState::kUnavailable, "unloaded");
  SetState("m", 2, VersionState::kUnavailable, "unloaded");
  EXPECT_THAT(Lines(), ElementsAre("m|1|UNAVAILABLE|unloaded", "m|2|UNAVAILABLE|unloaded"));
  reasons_["m"] = "a part is missing";
  EXPECT_THAT(Lines(), ElementsAre("m|1|UNAVAILABLE|a part is missing",
                                   "m|2|UNAVAILABLE|a part is missing"));
  SetState("m", 2, VersionState::kUnavailable, "broken");
  EXPECT_THAT(Lines(), ElementsAre("m|1|UNAVAILABLE|unloaded", "m|2|UNAVAILABLE|broken"));
}

TEST_F(AnIndex, ListsWhatIsServedThoughItLiesNowhere) {
  SetState("served", 1, VersionState::kReady);
  SetState("gone", 1, VersionState::kUnavailable, "unloaded");
  EXPECT_THAT(Lines(), ElementsAre("served|1|READY|"));
}

TEST_F(AnIndex, ListsAModelOfTwoRepositoriesAsUnavailable) {
  listing_.duplicates.insert("m");
  SetState("m", 1, VersionState::kReady);
  EXPECT_THAT(Lines(), ElementsAre("m||UNAVAILABLE|model appears in two or more repositories"));
}

TEST_F(AnIndex, IsInTheOrderOfNames) {
  for (const char* name : {"c", "a"}) Put(name);
  SetState("b", 1, VersionState::kReady);
  listing_.duplicates.insert("d");
  EXPECT_THAT(Lines(), ElementsAre("a|||", "b|1|READY|", "c|||",
                                   "d||UNAVAILABLE|model appears in two or more repositories"));
}

TEST_F(AnIndex, ListsModelsOfOneNameInSeveralNamespaces) {
  Put(ModelId("x", "m"));
  SetState(ModelId("y", "m"), 1, VersionState::kReady);
  EXPECT_THAT(Lines(), ElementsAre("m|||", "m|1|READY|"));
}

TEST_F(AnIndex, ListsAModelThatWasTriedInVainWithItsReason) {
  Put("m");
  records_["m"];
  reasons_["m"] = "at least one version must be available";
  EXPECT_THAT(Lines(), ElementsAre("m||UNAVAILABLE|at least one version must be available"));
}

}  // namespace
}  // namespace nereid::engine
