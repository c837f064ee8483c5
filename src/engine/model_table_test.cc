// SPDX-License-Identifier: Apache-2.0
#include "engine/model_table.h"

#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::engine {
namespace {

std::shared_ptr<core::Model> MakeModel() { return core::MakeFakeModel(0, {4}); }

std::string FindError(const ModelTable& table, std::string_view name, std::string_view version) {
  const auto found = table.Find(name, version);
  return found.ok() ? "" : found.status().ToString();
}

TEST(ModelTable, FindsTheLatestReadyVersionAndSaysWhyOthersCannotBeHad) {
  const auto one = MakeModel();
  const auto two = MakeModel();
  ModelRecords records;
  records["m"].versions[1] = {.state = VersionState::kReady, .model = one};
  records["m"].versions[2] = {.state = VersionState::kReady, .model = two};
  records["m"].versions[3] = {.state = VersionState::kUnavailable, .reason = "broken"};
  records["none"];
  const ModelTable table(records);

  EXPECT_EQ(&*table.Find("m", "").value(), two.get());
  EXPECT_EQ(&*table.Find("m", "1").value(), one.get());
  EXPECT_EQ(FindError(table, "x", ""), "Not found: Request for unknown model: 'x' is not found");
  EXPECT_EQ(FindError(table, "m", "9"),
            "Not found: Request for unknown model: 'm' version 9 is not found");
  EXPECT_EQ(FindError(table, "m", "3"),
            "Unavailable: Request for unknown model: 'm' version 3 is not at ready state");
  EXPECT_EQ(FindError(table, "none", ""),
            "Not found: Request for unknown model: 'none' has no available versions");
  EXPECT_EQ(FindError(table, "m", "one"),
            "Invalid argument: failed to get model version from specified version string 'one' "
            "(details: stol), version should be an integral value > 0");
}

using Models = std::vector<std::shared_ptr<core::Model>>;

// A table with the model m, whose versions are 1 and so on, and its rules.
ModelTable TableWith(const Models& models, const service::TrafficRules& rules) {
  ModelRecords records;
  ModelRecord& record = records["m"];
  int64_t number = 0;
  for (const auto& model : models) {
    record.versions[++number] = {.state = VersionState::kReady, .model = model};
  }
  record.traffic = Traffic::AfterChange(rules, nullptr);
  return ModelTable(records);
}

TEST(ModelTable, ALabelStandsForAVersion) {
  const Models models = {MakeModel(), MakeModel(), MakeModel()};
  service::TrafficRules rules;
  rules.labels = {{"stable", 2}, {"gone", 9}};
  const ModelTable table = TableWith(models, rules);
  EXPECT_EQ(&*table.Find("m", "stable").value(), models[1].get());
  EXPECT_EQ(&*table.Find("m", "1").value(), models[0].get());
  EXPECT_EQ(&*table.Find("m", "").value(), models[2].get());
  EXPECT_EQ(FindError(table, "m", "stabel"),
            "Not found: model 'm' has no version label 'stabel'; labels: 'gone', 'stable'");
  EXPECT_EQ(FindError(table, "m", "gone"),
            "Unavailable: label 'gone' of model 'm' stands for version 9, which is not at ready "
            "state");
  EXPECT_EQ(table.NumberOf("m", "stable").value(), "2");
  EXPECT_EQ(table.NumberOf("m", "7").value(), "7");
}

TEST(ModelTable, RequestsWithoutAVersionAvoidTheCanary) {
  const Models models = {MakeModel(), MakeModel(), MakeModel()};
  service::TrafficRules rules;
  rules.labels = {{"stable", 1}};
  rules.canary = service::Canary{.version = 3, .percent = 10, .header = "x", .label = ""};
  const ModelTable table = TableWith(models, rules);
  const core::ModelHandle unnamed = table.Find("m", "").value();
  EXPECT_EQ(&*unnamed, models[1].get());
  EXPECT_TRUE(unnamed.follows_rules());
  EXPECT_TRUE(unnamed.is_divided());
  EXPECT_FALSE(table.Find("m", "3")->follows_rules());
  EXPECT_FALSE(table.Find("m", "stable")->is_divided());
  EXPECT_EQ(&*table.FindForStep("m", -1).value(), models[1].get());

  rules.default_label = "stable";
  rules.canary->label = "stable";
  const ModelTable labelled = TableWith(models, rules);
  EXPECT_EQ(&*labelled.Find("m", "").value(), models[0].get());
  EXPECT_TRUE(labelled.Find("m", "stable")->is_divided());
  EXPECT_EQ(&*labelled.FindForStep("m", -1).value(), models[0].get());
}

TEST(ModelTable, ACanaryThatIsTheOnlyVersionServesEverything) {
  const Models models = {MakeModel()};
  service::TrafficRules rules;
  rules.canary = service::Canary{.version = 1, .percent = 1, .header = "x", .label = ""};
  const ModelTable table = TableWith(models, rules);
  EXPECT_EQ(&*table.Find("m", "").value(), models[0].get());
}

TEST(ModelTable, IsReadyWhenEverythingButWhatWasUnloadedIs) {
  ModelRecords records;
  records["m"].versions[1] = {.state = VersionState::kReady, .model = MakeModel()};
  records["m"].versions[2] = {.state = VersionState::kUnloading, .model = MakeModel()};
  records["m"].versions[3] = {.state = VersionState::kUnavailable,
                              .reason = std::string(kUnloadedReason)};
  EXPECT_TRUE(ModelTable(records).all_ready());
  records["m"].versions[4] = {.state = VersionState::kLoading};
  EXPECT_FALSE(ModelTable(records).all_ready());
  records["m"].versions[4] = {.state = VersionState::kUnavailable, .reason = "broken"};
  EXPECT_FALSE(ModelTable(records).all_ready());
  records["m"].versions.erase(4);
  records["none"];
  EXPECT_FALSE(ModelTable(records).all_ready());
}

TEST(ModelTable, AChangeLeavesTheOtherModelsAsTheyWere) {
  const auto one = MakeModel();
  const auto two = MakeModel();
  ModelRecords records;
  for (int i = 0; i < 200; ++i) {
    records["m" + std::to_string(i)].versions[1] = {.state = VersionState::kReady, .model = one};
  }
  const ModelTable before(records);
  const ModelRecords changed = {
      {"m7",
       {.versions = {{1, {.state = VersionState::kUnavailable, .reason = "broken"}},
                     {2, {.state = VersionState::kReady, .model = two}}}}},
      {"", {.versions = {{1, {.state = VersionState::kReady, .model = two}}}}}};
  const ModelTable after(before, changed, std::nullopt);

  EXPECT_EQ(&*after.Find("m7", "").value(), two.get());
  EXPECT_EQ(FindError(after, "m7", "1"),
            "Unavailable: Request for unknown model: 'm7' version 1 is not at ready state");
  EXPECT_EQ(&*after.Find("", "").value(), two.get());
  EXPECT_EQ(&*after.Find("m8", "").value(), one.get());
  EXPECT_EQ(after.models().size(), 201u);
  EXPECT_FALSE(after.all_ready());
  // Readers of the old table still see the old state.
  EXPECT_EQ(&*before.Find("m7", "").value(), one.get());
  EXPECT_EQ(before.models().size(), 200u);
  EXPECT_TRUE(before.all_ready());
}

TEST(ModelTable, LeavesOutModelsThatAreGone) {
  const auto model = MakeModel();
  ModelRecords records;
  records["m"].versions[1] = {.state = VersionState::kReady, .model = model};
  records["none"];
  const ModelTable before(records);
  EXPECT_FALSE(before.all_ready());
  const ModelTable after(before, {}, std::nullopt, {"none", "unknown"});
  EXPECT_EQ(FindError(after, "none", ""),
            "Not found: Request for unknown model: 'none' is not found");
  EXPECT_EQ(&*after.Find("m", "").value(), model.get());
  EXPECT_EQ(after.models().size(), 1u);
  EXPECT_TRUE(after.all_ready());
  EXPECT_NE(before.Record("none"), nullptr);
}

TEST(ModelTable, ResolvesNamesInNamespaces) {
  const auto model = MakeModel();
  ModelRecords records;
  const repository::ModelId a("a", "m");
  const repository::ModelId b("b", "m");
  records[a].versions[1] = {.state = VersionState::kReady, .model = model};
  records[b].versions[1] = {.state = VersionState::kReady, .model = MakeModel()};
  EXPECT_EQ(FindError(ModelTable(records, {{a, b}}), "m", ""),
            "Invalid argument: There are 2 identifiers of model 'm' in global map, model namespace "
            "must be provided to resolve ambiguity.");
  EXPECT_EQ(&*ModelTable(records, {{a}}).Find("m", "").value(), model.get());
  EXPECT_EQ(&*ModelTable(records, {{a, b}}).FindForStep("a::m", -1).value(), model.get());
  EXPECT_EQ(FindError(ModelTable(records, std::set<repository::ModelId>()), "m", ""),
            "Not found: Identifier of model 'm' is not found in global map");
  EXPECT_EQ(FindError(ModelTable(records, {{a, b}}), "x", ""),
            "Invalid argument: Request for unknown model: 'x' is not found");
  // A model that is added later is among the names, too.
  const std::set<repository::ModelId> named = {a};
  const ModelTable before(records, named);
  const repository::ModelId c("a", "n");
  const ModelTable after(before, {{c, records[a]}}, named);
  EXPECT_EQ(FindError(after, "n", ""),
            "Not found: Identifier of model 'n' is not found in global map");
  // One that is gone is not.
  const ModelTable without(after, {{a, records[a]}}, named, {c});
  EXPECT_EQ(FindError(without, "n", ""),
            "Invalid argument: Request for unknown model: 'n' is not found");
  EXPECT_EQ(&*without.Find("m", "").value(), model.get());
}

TEST(Model, IsNotPinnedOnceClosedAndTellsWhenTheLastUseEnds) {
  const auto model = MakeModel();
  ASSERT_TRUE(model->TryPin());
  core::ModelHandle first(*model);
  core::ModelHandle second = first.Duplicate();
  bool drained = false;
  model->Close([&] { drained = true; });
  EXPECT_FALSE(model->TryPin());
  first.Reset();
  EXPECT_FALSE(drained);
  second.Reset();
  EXPECT_TRUE(drained);
  // A thread may still read a table that refers to the closed model.
  EXPECT_FALSE(model->TryPin());
  EXPECT_EQ(model->pin_count(), 0u);
}

}  // namespace
}  // namespace nereid::engine
