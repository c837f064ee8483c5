// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parsers of model configurations, from a repository (text format) or a load request
// (JSON): each input is accepted or refused with a reason, and what is accepted can be printed and
// parsed again.
#include "config/parse.h"

#include "base/check.h"
#include "config/complete.h"
#include "config/paths.h"
#include "config/print.h"
#include "config/validate.h"
#include "fuzz/fuzz.h"

namespace {

using nereid::config::CompleteFromFiles;
using nereid::config::ModelConfig;
using nereid::config::Normalize;
using nereid::config::ParseModelConfigJson;
using nereid::config::ParseModelConfigText;
using nereid::config::ToJson;
using nereid::config::ValidateModelConfig;
using nereid::config::ValidatePaths;
using nereid::config::ValidateTensors;
using nereid::config::VersionFolder;

void Use(const ModelConfig& parsed) {
  auto completed = CompleteFromFiles(parsed, "m", VersionFolder{.files = {"model.onnx"}});
  if (!completed.ok()) return;
  const ModelConfig config = Normalize(*completed);
  for (const auto& status : {ValidateModelConfig(config, "f"), ValidateTensors(config, "f"),
                             ValidatePaths(config, "/", "f")}) {
    NEREID_CHECK(status.ok() || !status.message().empty());
  }
  const auto json = ToJson(config);
  NEREID_CHECK(json.ok());
  const auto again = ParseModelConfigJson(*json);
  NEREID_CHECK(again.ok());
  NEREID_CHECK(*ToJson(*again) == *json);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      R"(name: "m" backend: "identity" max_batch_size: 16
input [ { name: "I" data_type: TYPE_STRING dims: [ 4, -1 ] reshape { shape: [ -1, 4 ] } } ]
output [ { name: "O" data_type: TYPE_FP32 dims: [ 1 ] label_filename: "l" } ]
version_policy { specific { versions: [ 1, 2 ] } }
instance_group [ { count: 2 kind: KIND_CPU profile: [ "1" ] } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 })",
      R"(platform: "ensemble" input { name: "A" data_type: TYPE_BF16 dims: 1 }
output { name: "B" data_type: TYPE_BF16 dims: 1 } # a comment
ensemble_scheduling { step { model_name: "x" model_version: -1
  input_map { key: "I" value: "A" } output_map { key: "O" value: "B" } } })",
      R"(backend: 'python' sequence_batching { oldest { max_candidate_sequences: 4 }
  control_input { name: "C" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1.5e3 ] } }
  state { input_name: "a" output_name: "b" data_type: TYPE_INT32 dims: [ 1 ]
          initial_state { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "n" } } }
parameters { key: "k" value { string_value: "\x41\n\"" } })",
      R"({"name":"m","backend":"identity","max_batch_size":"8","input":[{"name":"I","data_type":)"
      R"("TYPE_FP32","dims":["-1"]}],"output":[{"name":"O","data_type":11,"dims":[-1]}]})",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto from_text = ParseModelConfigText(text, "config.pbtxt");
  if (from_text.ok()) {
    Use(*from_text);
  } else {
    NEREID_CHECK(!from_text.status().message().empty());
  }
  const auto from_json = ParseModelConfigJson(text);
  if (from_json.ok()) Use(*from_json);
  return 0;
}
