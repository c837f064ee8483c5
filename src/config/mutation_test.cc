// SPDX-License-Identifier: Apache-2.0
// Damaged configurations go through all steps of loading a model's configuration. Each is either
// accepted or refused with a reason; none may crash or hang the process.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "config/complete.h"
#include "config/parse.h"
#include "config/paths.h"
#include "config/print.h"
#include "config/validate.h"

namespace nereid::config {
namespace {

constexpr const char* kConfig = R"pbtxt(
name: "m" backend: "identity" max_batch_size: 16
input [ { name: "I" data_type: TYPE_STRING dims: [ 4, -1 ] reshape { shape: [ -1, 4 ] } } ]
output [ { name: "O" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } label_filename: "l" } ]
version_policy { specific { versions: [ 1, 2 ] } }
instance_group [ { count: 2 kind: KIND_CPU gpus: [ ] profile: [ "1" ] } ]
sequence_batching {
  control_input [ { name: "C" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "a" output_name: "b" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state { data_type: TYPE_INT32 dims: [ 1 ] data_file: "f" name: "n" } } ]
  direct { max_queue_delay_microseconds: 3 minimum_slot_utilization: 0.5 }
}
batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "T" data_type: TYPE_FP32 source_input: "I" } ]
model_warmup [ { name: "w" batch_size: 1 inputs { key: "I" value { dims: [ 3 ] zero_data: true } } } ]
cc_model_filenames { key: "7.5" value: "../x" }
parameters { key: "k" value { string_value: "v" } }
model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: [ 1, 2 ] } } }
)pbtxt";

std::string Mutated(std::mt19937& random) {
  std::string text = kConfig;
  const char* pieces[] = {"-1",
                          "18446744073709551615",
                          "{",
                          "}",
                          "[",
                          "]",
                          "\"",
                          "'",
                          "0x7",
                          "TYPE_BF16",
                          "name: 1 ",
                          "true",
                          "nan",
                          ":",
                          "99",
                          "\xff",
                          "-9223372036854775808"};
  for (unsigned i = 0, changes = 1 + random() % 4; i < changes; ++i) {
    const size_t at = random() % text.size();
    switch (random() % 3) {
      case 0:
        text.erase(at, random() % 20);
        break;
      case 1:
        text.insert(at, pieces[random() % std::size(pieces)]);
        break;
      default:
        text[at] = static_cast<char>(random());
        break;
    }
  }
  return text;
}

void LoadOne(const std::string& text) {
  auto parsed = ParseModelConfigText(text, "config.pbtxt");
  if (!parsed.ok()) {
    EXPECT_FALSE(parsed.status().message().empty());
    return;
  }
  auto completed = CompleteFromFiles(*parsed, "m", VersionFolder{.files = {"model.onnx"}});
  if (!completed.ok()) return;
  ModelConfig config = Normalize(*completed);
  for (const base::Status& status : {ValidateModelConfig(config, "f"), ValidateTensors(config, "f"),
                                     ValidatePaths(config, "/", "f")}) {
    EXPECT_TRUE(status.ok() || !status.message().empty());
  }
  config = NormalizeInstanceGroups(std::move(config), {}, {0, 1});
  const base::Status groups =
      ValidateInstanceGroups(config, {.gpus = {0, 1}, .built_with_gpus = true});
  EXPECT_TRUE(groups.ok() || !groups.message().empty());
  const auto json = ToJson(config);
  ASSERT_TRUE(json.ok()) << json.status().message();
  const auto again = ParseModelConfigJson(*json);
  ASSERT_TRUE(again.ok()) << again.status().message() << *json;
  EXPECT_EQ(*ToJson(*again), *json);
}

TEST(DamagedConfigurations, AreEachAcceptedOrRefusedOnTheirOwn) {
  std::mt19937 random(20260101);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = Mutated(random);
    SCOPED_TRACE(text);
    LoadOne(text);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace nereid::config
