// SPDX-License-Identifier: Apache-2.0
// Tests how the trace settings of models and of the server combine.
#include <gtest/gtest.h>

#include "observe/trace.h"

namespace nereid::observe {
namespace {

class TraceSettingsTest : public testing::Test {
 protected:
  static constexpr TraceSettings kAtStart{.levels = kTraceTimestamps, .rate = 10};

  bool Change(const std::string& model, const TraceChange& change) {
    return tracing_.Change(model, change).ok();
  }
  uint32_t Rate(const std::string& model) { return tracing_.Read(model).settings.rate; }

  Tracing tracing_{TraceOptions{.settings = kAtStart, .file = "/nowhere/trace"}};
};

TEST_F(TraceSettingsTest, OfAModelAreItsOwnOnceTheyAreSet) {
  EXPECT_TRUE(Change("m", {.rate = {.value = 5}}));
  EXPECT_EQ(Rate("m"), 5u);
  EXPECT_EQ(Rate("other"), 10u);
  EXPECT_EQ(Rate(""), 10u);
}

TEST_F(TraceSettingsTest, OfTheServerReachModelsThatHaveNone) {
  EXPECT_TRUE(Change("m", {.count = {.value = 3}}));
  EXPECT_TRUE(Change("", {.rate = {.value = 7}, .count = {.value = 9}}));
  EXPECT_EQ(Rate("m"), 7u);
  EXPECT_EQ(tracing_.Read("m").settings.count, 3);
  EXPECT_EQ(tracing_.Read("other").settings.count, 9);
}

TEST_F(TraceSettingsTest, AreClearedToThoseOfTheServerAndOfItsStart) {
  EXPECT_TRUE(Change("m", {.rate = {.value = 5}}));
  EXPECT_TRUE(Change("", {.rate = {.value = 7}}));
  EXPECT_EQ(Rate("m"), 5u);
  EXPECT_TRUE(Change("m", {.rate = {.is_cleared = true}}));
  EXPECT_EQ(Rate("m"), 7u);
  EXPECT_TRUE(Change("", {.rate = {.is_cleared = true}}));
  EXPECT_EQ(Rate("m"), 10u);
  EXPECT_EQ(Rate(""), 10u);
}

TEST_F(TraceSettingsTest, OfAModelMayTurnItOff) {
  EXPECT_TRUE(Change("", {.rate = {.value = 1}}));
  EXPECT_TRUE(Change("quiet", {.levels = {.value = kTraceOff}}));
  EXPECT_EQ(tracing_.Start("quiet", {}), nullptr);
  EXPECT_NE(tracing_.Start("m", {}), nullptr);
  EXPECT_TRUE(tracing_.is_on());
}

TEST_F(TraceSettingsTest, AreRefusedWithoutAnEffect) {
  EXPECT_FALSE(Change("m", {.rate = {.value = 0}, .count = {.value = 1}}));
  EXPECT_EQ(Rate("m"), 10u);
  EXPECT_EQ(tracing_.Read("m").settings.count, -1);
  // Settings that are off may have any rate.
  EXPECT_TRUE(Change("m", {.levels = {.value = kTraceOff}, .rate = {.value = 0}}));
}

// A model may have settings of its own that are right only while those of the server are off.
TEST_F(TraceSettingsTest, OfTheServerChangeForAllModelsOrForNone) {
  EXPECT_TRUE(Change("", {.levels = {.value = kTraceOff}}));
  EXPECT_TRUE(Change("a", {.rate = {.value = 3}}));
  EXPECT_TRUE(Change("m", {.rate = {.value = 0}}));
  EXPECT_FALSE(Change("", {.levels = {.value = kTraceTimestamps}}));
  for (const char* const model : {"", "a", "m", "other"}) {
    EXPECT_EQ(tracing_.Read(model).settings.levels, kTraceOff) << model;
  }
  EXPECT_FALSE(tracing_.is_on());
  EXPECT_TRUE(Change("m", {.rate = {.is_cleared = true}}));
  EXPECT_TRUE(Change("", {.levels = {.value = kTraceTimestamps}}));
  EXPECT_TRUE(tracing_.is_on());
  EXPECT_EQ(tracing_.Read("m").settings.levels, kTraceTimestamps);
}

TEST_F(TraceSettingsTest, AreShownWithTheFile) {
  const TraceView view = tracing_.Read("");
  EXPECT_EQ(view.file, "/nowhere/trace");
  EXPECT_EQ(view.mode, TraceMode::kTriton);
  EXPECT_EQ(view.settings.levels, kTraceTimestamps);
}

}  // namespace
}  // namespace nereid::observe
