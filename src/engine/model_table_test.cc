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
  std::map<std::string, ModelRecord> records;
  records["m"].versions[1] = {.state = VersionState::kReady, .model = one};
  records["m"].versions[2] = {.state = VersionState::kReady, .model = two};
  records["m"].versions[3] = {.state = VersionState::kUnavailable, .reason = "broken"};
  records["none"].reason = "no configuration";
  const ModelTable table(std::move(records));

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

TEST(ModelTable, PrintsAnIndexWithReasons) {
  std::map<std::string, ModelRecord> records;
  records["bad"].reason = "no configuration";
  records["good"].versions[1] = {.state = VersionState::kReady, .model = MakeModel()};
  const ModelTable table(std::move(records));
  const auto all = table.Index(false);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "bad");
  EXPECT_EQ(all[0].state, "UNAVAILABLE");
  EXPECT_EQ(all[0].reason, "no configuration");
  EXPECT_EQ(all[1].state, "READY");
  EXPECT_EQ(table.Index(true).size(), 1u);
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
}

}  // namespace
}  // namespace nereid::engine
