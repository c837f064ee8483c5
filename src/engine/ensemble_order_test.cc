// SPDX-License-Identifier: Apache-2.0
#include "engine/ensemble_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

using Sources = ModelSources;

void AddEnsemble(Sources& sources, const ModelId& id, const std::vector<std::string>& models) {
  auto source = std::make_shared<repository::ModelSource>();
  source->name = id.name;
  source->name_space = id.name_space;
  config::ModelConfig config;
  config.name = id.name;
  if (!models.empty()) {
    config::Ensembling ensemble;
    for (const std::string& model : models) {
      ensemble.step.push_back({.model_name = model, .model_version = -1});
    }
    config.scheduling_choice = ensemble;
  }
  source->config = config;
  sources[id] = source;
}

void AddModel(Sources& sources, const ModelId& id) { AddEnsemble(sources, id, {}); }

std::vector<std::string> Names(const std::vector<EnsembleEntry>& entries) {
  std::vector<std::string> names;
  for (const EnsembleEntry& entry : entries) names.push_back(entry.id.Text());
  return names;
}

std::string ErrorOf(const std::vector<EnsembleEntry>& entries, const std::string& name) {
  for (const EnsembleEntry& entry : entries) {
    if (entry.id.name == name) return std::string(entry.status.message());
  }
  return "no such ensemble";
}

TEST(OrderEnsembles, PutsEachAfterThoseItContains) {
  Sources sources;
  AddModel(sources, "m");
  AddEnsemble(sources, "a", {"b", "m"});
  AddEnsemble(sources, "b", {"c"});
  AddEnsemble(sources, "c", {"m"});
  const auto ordered = OrderEnsembles(sources);
  EXPECT_THAT(Names(ordered), testing::ElementsAre("c", "b", "a"));
  EXPECT_EQ(ordered[0].depth, 1);
  EXPECT_EQ(ordered[2].depth, 3);
}

TEST(OrderEnsembles, NamesTheFirstModelThatIsMissing) {
  Sources sources;
  AddModel(sources, "m");
  AddEnsemble(sources, "e", {"m", "x", "a"});
  EXPECT_EQ(ErrorOf(OrderEnsembles(sources), "e"),
            "ensemble e contains models that are not available or ambiguous: x");
}

TEST(OrderEnsembles, NamesCircles) {
  Sources sources;
  AddEnsemble(sources, "a", {"b"});
  AddEnsemble(sources, "b", {"a"});
  AddEnsemble(sources, "self", {"self"});
  AddEnsemble(sources, "outside", {"a"});
  const auto ordered = OrderEnsembles(sources);
  ASSERT_EQ(ordered.size(), 4u);
  EXPECT_EQ(ErrorOf(ordered, "a"), "circular dependency between ensembles: a -> ... -> b -> a");
  EXPECT_EQ(ErrorOf(ordered, "b"), "circular dependency between ensembles: b -> ... -> a -> b");
  EXPECT_EQ(ErrorOf(ordered, "self"),
            "circular dependency between ensembles: self -> ... -> self -> self");
  // An ensemble that only contains part of a cycle fails later, because of that part.
  EXPECT_EQ(ErrorOf(ordered, "outside"), "");
}

TEST(OrderEnsembles, AsksForTheModelThatIsProbablyMeant) {
  Sources sources;
  AddModel(sources, "preprocess");
  AddEnsemble(sources, "e", {"preproces"});
  EXPECT_EQ(
      ErrorOf(OrderEnsembles(sources), "e"),
      "ensemble e contains models that are not available or ambiguous: preproces; did you mean "
      "'preprocess'?");
}

TEST(OrderEnsembles, RefusesNestingThatNoStackHolds) {
  Sources sources;
  AddModel(sources, "m");
  AddEnsemble(sources, "e1000", {"m"});
  for (int i = 1001; i < 1100; ++i) {
    AddEnsemble(sources, "e" + std::to_string(i), {"e" + std::to_string(i - 1)});
  }
  const auto ordered = OrderEnsembles(sources);
  EXPECT_EQ(ErrorOf(ordered, "e1063"), "");
  EXPECT_EQ(ErrorOf(ordered, "e1064"),
            "ensemble 'e1064' contains ensembles that are nested more than 64 deep");
}

TEST(OrderEnsembles, PrefersModelsOfTheEnsemblesOwnNamespace) {
  Sources sources;
  AddModel(sources, {"a", "both"});
  AddModel(sources, {"b", "both"});
  AddModel(sources, {"b", "only"});
  AddEnsemble(sources, {"a", "e"}, {"both", "only"});
  AddEnsemble(sources, {"c", "f"}, {"both"});
  const auto ordered = OrderEnsembles(sources);
  EXPECT_THAT(ordered[0].steps, testing::ElementsAre(ModelId("a", "both"), ModelId("b", "only")));
  EXPECT_EQ(ErrorOf(ordered, "f"),
            "ensemble c::f contains models that are not available or ambiguous: both");
}

}  // namespace
}  // namespace nereid::engine
