// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <map>

#include "backend_kit/wire_reader.h"

namespace nereid::tensorflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSavedModel = R"("platform":"tensorflow_savedmodel")";

backend::Result<Settings> Read(std::initializer_list<std::pair<const char*, const char*>> given,
                               const std::string& more = kSavedModel,
                               const CommandLine& flags = {}) {
  std::string parameters;
  for (const auto& [key, value] : given) {
    parameters += parameters.empty() ? "" : ",";
    parameters += backend::StrCat("\"", key, "\":{\"string_value\":\"", value, "\"}");
  }
  auto config = backend::ModelConfig::Parse(
      backend::StrCat("{\"parameters\":{", parameters, "},", more, "}"));
  return Settings::FromConfig(config.value(), flags, "m");
}

std::string Refusal(const char* key, const char* value) {
  auto settings = Read({{key, value}});
  return settings.ok() ? std::string() : std::string(settings.TakeError().message());
}

// The numbers of a ConfigProto, by the numbers of their fields.
std::map<uint32_t, uint64_t> Numbers(const std::string& proto) {
  backend::WireReader reader(proto);
  backend::WireRange message = reader.whole();
  std::map<uint32_t, uint64_t> numbers;
  while (const auto field = reader.Next(message)) {
    numbers[field->number] = field->value;
  }
  EXPECT_TRUE(reader.ok());
  return numbers;
}

TEST(TensorFlowSettings, ShareOneSessionOfTheServingGraphByDefault) {
  auto settings = Read({});
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings.value().is_graph_def);
  EXPECT_EQ(settings.value().model_filename, "model.savedmodel");
  EXPECT_THAT(settings.value().tags, ElementsAre("serve"));
  EXPECT_EQ(settings.value().signature, "");
  EXPECT_EQ(settings.value().share_count, std::nullopt);
}

TEST(TensorFlowSettings, KnowThePlatformsFile) {
  EXPECT_EQ(Read({}, R"("platform":"tensorflow_graphdef")").value().model_filename,
            "model.graphdef");
  EXPECT_EQ(Read({}, R"("platform":"tensorflow_graphdef","default_model_filename":"frozen.pb")")
                .value()
                .model_filename,
            "frozen.pb");
  auto other = Read({}, R"("platform":"onnxruntime_onnx")");
  ASSERT_FALSE(other.ok());
  EXPECT_STREQ(other.TakeError().message(),
               "platform onnxruntime_onnx not supported for TensorFlow model 'm'");
}

TEST(TensorFlowSettings, TakeTritonsParameters) {
  auto settings =
      Read({{"TF_NUM_INTRA_THREADS", "3"},
            {"TF_NUM_INTER_THREADS", "5"},
            {"TF_USE_PER_SESSION_THREADS", "On"},
            {"TF_GRAPH_TAG", "serve,gpu"},
            {"TF_SIGNATURE_DEF", "other"},
            {"MAX_SESSION_SHARE_COUNT", "2"},
            {"TF_INIT_OPS_FILE", "init.json"}},
           backend::StrCat(kSavedModel, R"(,"model_operations":{"op_library_filename":["a.so"]})"));
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings.value().tags, ElementsAre("serve", "gpu"));
  EXPECT_EQ(settings.value().signature, "other");
  EXPECT_EQ(settings.value().share_count, 2);
  EXPECT_EQ(settings.value().init_ops_file, "init.json");
  EXPECT_THAT(settings.value().libraries, ElementsAre("a.so"));
  auto numbers = Numbers(settings.value().session_config);
  EXPECT_EQ(numbers[2], 3U);
  EXPECT_EQ(numbers[5], 5U);
  EXPECT_EQ(numbers[9], 1U);
}

TEST(TensorFlowSettings, LetOperationsRunOnTheCallersThread) {
  auto numbers = Numbers(Read({{"TF_NUM_INTER_THREADS", "-1"}}).value().session_config);
  EXPECT_EQ(static_cast<int64_t>(numbers[5]), -1);
}

TEST(TensorFlowSettings, RefuseOtherValuesWithTritonsTexts) {
  EXPECT_EQ(
      Refusal("TF_NUM_INTRA_THREADS", "-1"),
      "parameter 'TF_NUM_INTRA_THREADS' must be non-negative number for TensorFlow model 'm'");
  EXPECT_EQ(Refusal("MAX_SESSION_SHARE_COUNT", "0"),
            "parameter 'MAX_SESSION_SHARE_COUNT' must be positive number for TensorFlow model 'm'");
  EXPECT_THAT(Refusal("TF_USE_PER_SESSION_THREADS", "perhaps"), HasSubstr("to boolean"));
}

TEST(TensorFlowCommandLine, IsTritons) {
  auto flags = CommandLine::Parse(
      R"({"cmdline":{"allow-soft-placement":"false","gpu-memory-fraction":"0.25",)"
      R"("default-max-batch-size":"9","version":"2"}})");
  ASSERT_TRUE(flags.ok());
  EXPECT_FALSE(flags.value().allow_soft_placement);
  EXPECT_EQ(flags.value().gpu_memory_fraction, 0.25);
  EXPECT_EQ(flags.value().default_max_batch_size, 9);
  EXPECT_EQ(Numbers(Read({}, kSavedModel, flags.value()).value().session_config)[7], 0U);
}

TEST(TensorFlowCommandLine, RefusesWhatCannotBe) {
  for (const char* json :
       {R"({"cmdline":{"version":"1"}})", R"({"cmdline":{"gpu-memory-fraction":"2"}})",
        R"({"cmdline":{"gpu-memory-fraction":"nan"}})",
        R"({"cmdline":{"allow-soft-placement":"x"}})"}) {
    EXPECT_FALSE(CommandLine::Parse(json).ok()) << json;
  }
}

}  // namespace
}  // namespace nereid::tensorflow
