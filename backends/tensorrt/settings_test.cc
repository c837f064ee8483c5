// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nereid::tensorrt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Settings Read(const std::string& json) {
  auto config = backend::ModelConfig::Parse(json);
  auto settings = Settings::FromConfig(config.value());
  EXPECT_TRUE(settings.ok());
  return settings.ok() ? std::move(settings).value() : Settings();
}

std::string ErrorOf(const std::string& json) {
  auto config = backend::ModelConfig::Parse(json);
  auto settings = Settings::FromConfig(config.value());
  return settings.ok() ? "" : settings.TakeError().message();
}

std::vector<int64_t> GraphSizes(const std::string& json) {
  std::vector<int64_t> sizes;
  for (const GraphSpec& spec : Read(json).graphs) {
    sizes.push_back(spec.batch_size);
  }
  return sizes;
}

std::string WithGraph(const std::string& spec) {
  return R"({"max_batch_size":8,"optimization":{"cuda":{"graphs":true,"graph_spec":[)" + spec +
         "]}}}";
}

TEST(Settings, DefaultsAreThoseOfTriton) {
  const Settings settings = Read("{}");
  EXPECT_EQ(settings.model_filename, "model.plan");
  EXPECT_EQ(settings.priority, Stream::Priority::kDefault);
  EXPECT_TRUE(settings.pins_inputs);
  EXPECT_TRUE(settings.pins_outputs);
  EXPECT_FALSE(settings.uses_graphs);
  EXPECT_FALSE(settings.has_output_stream);
  EXPECT_FALSE(settings.is_busy_waiting);
}

TEST(Settings, ThePlanOfADeviceGoesByItsComputeCapability) {
  const Settings settings =
      Read(R"({"default_model_filename":"a","cc_model_filenames":{"9.0":"b"}})");
  EXPECT_EQ(settings.FilenameFor({.major = 9, .minor = 0}), "b");
  EXPECT_EQ(settings.FilenameFor({.major = 8, .minor = 9}), "a");
}

TEST(Settings, GraphsAreForTritonsSizesUnlessTheSchedulerPrefersOthers) {
  EXPECT_THAT(GraphSizes(R"({"max_batch_size":8,"optimization":{"cuda":{"graphs":true}}})"),
              ElementsAre(1, 2, 3, 4, 6, 8));
  EXPECT_THAT(GraphSizes(R"({"max_batch_size":8,"optimization":{"cuda":{"graphs":true}},
                             "dynamic_batching":{"preferred_batch_size":[5]}})"),
              ElementsAre(1, 5, 8));
  EXPECT_THAT(GraphSizes(R"({"optimization":{"cuda":{"graphs":true}}})"), ElementsAre(0));
  EXPECT_THAT(GraphSizes(R"({"max_batch_size":8,"optimization":{"cuda":{"graphs":false}}})"),
              IsEmpty());
}

TEST(Settings, ASpecificationMustFitTheModel) {
  EXPECT_EQ(ErrorOf(WithGraph(R"({"batch_size":8})")), "");
  EXPECT_THAT(ErrorOf(WithGraph(R"({"batch_size":9})")), HasSubstr(">= 1 and <= 8"));
  EXPECT_THAT(ErrorOf(WithGraph(R"({"batch_size":2,"graph_lower_bound":{"batch_size":3}})")),
              HasSubstr("graph lower bound spec expects 'batch_size' to be <="));
  EXPECT_THAT(ErrorOf(WithGraph(R"({"batch_size":2,"input":{"A":{"dim":["4"]}},
                                    "graph_lower_bound":{"batch_size":1}})")),
              HasSubstr("expects shape for input 'A'"));
  EXPECT_THAT(ErrorOf(WithGraph(R"({"batch_size":2,"input":{"A":{"dim":["4"]}},
                       "graph_lower_bound":{"batch_size":1,"input":{"A":{"dim":["5"]}}}})")),
              HasSubstr("to have dimension <= 4"));
}

TEST(BackendSettings, PluginsAreSeparatedBySemicolons) {
  auto settings = BackendSettings::FromJson(
      R"({"cmdline":{"plugins":"a.so;;/b/c.so","version-compatible":"TRUE"}})");
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings.value().plugins, ElementsAre("a.so", "/b/c.so"));
  EXPECT_TRUE(settings.value().is_version_compatible);
  EXPECT_TRUE(settings.value().library.empty());
}

TEST(BackendSettings, WhatIsNotABooleanIsRefused) {
  auto settings = BackendSettings::FromJson(R"({"cmdline":{"coalesce-request-input":"maybe"}})");
  ASSERT_FALSE(settings.ok());
  EXPECT_THAT(settings.TakeError().message(), HasSubstr("failed to convert 'maybe' to boolean"));
}

}  // namespace
}  // namespace nereid::tensorrt
