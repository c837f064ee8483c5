// SPDX-License-Identifier: Apache-2.0
// The expected texts are GET /v2/models/M/config of the reference server for the same
// configuration, byte for byte.
#include <gtest/gtest.h>

#include <string>

#include "config/complete.h"
#include "config/parse.h"
#include "config/print.h"

namespace nereid::config {
namespace {

// Completes a configuration as a server does without preferences of the backend and without a GPU.
std::string Served(const std::string& name, const std::string& text) {
  auto parsed = ParseModelConfigText(text, "config.pbtxt");
  if (!parsed.ok()) return parsed.status().ToString();
  auto completed = CompleteFromFiles(*parsed, name, {});
  if (!completed.ok()) return completed.status().ToString();
  auto json = ToJson(NormalizeInstanceGroups(Normalize(*completed), {}, {}));
  return json.ok() ? *json : json.status().ToString();
}

TEST(ConfigJson, PrintsEveryPrimitiveOfAMinimalModel) {
  EXPECT_EQ(
      Served("minimal", R"pbtxt(backend: "identity"
max_batch_size: 8
input [{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }]
output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }])pbtxt"),
      R"json({"name":"minimal","platform":"","backend":"identity","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":8,"input":[{"name":"INPUT0","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[-1],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[-1],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"instance_group":[{"name":"minimal","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]})json");
}

TEST(ConfigJson, PrintsPriorities64BitNumbersAndEscapes) {
  EXPECT_EQ(
      Served("dynamic", R"pbtxt(name: "dynamic"
backend: "identity"
max_batch_size: 16
input [{ name: "INPUT0" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } }]
output [{ name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } label_filename: "labels.txt" }]
version_policy { specific { versions: [ 1 ] } }
instance_group [{ count: 2 kind: KIND_CPU host_policy: "policy_0" rate_limiter { resources [{ name: "R1" global: true count: 3 }] priority: 2 } }]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  preserve_ordering: false
  priority_levels: 18446744073709551615
  default_priority_level: 18446744073709551615
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5000000000 allow_timeout_override: true max_queue_size: 10 }
  priority_queue_policy { key: 1 value { timeout_action: REJECT default_timeout_microseconds: 9007199254740993 } }
}
optimization {
  graph { level: 1 }
  priority: PRIORITY_MAX
  cuda { graphs: true graph_spec [{ batch_size: 4 input { key: "INPUT0" value { dim: [ 4, 9007199254740993 ] } } graph_lower_bound { batch_size: 1 input { key: "INPUT0" value { dim: [ 4, 1 ] } } } }] output_copy_stream: true }
  execution_accelerators { gpu_execution_accelerator [{ name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } }] cpu_execution_accelerator [{ name: "openvino" }] }
  input_pinned_memory { enable: false }
  gather_kernel_buffer_threshold: 3
  eager_batching: true
}
parameters { key: "quote\"d \\ \n tab\t é" value { string_value: "v </script> \u0001" } }
metric_tags { key: "team" value: "a" }
cc_model_filenames { key: "7.5" value: "model75.onnx" }
default_model_filename: "model.bin"
model_transaction_policy { decoupled: false }
response_cache { enable: false }
model_operations { op_library_filename: [ "a.so", "b.so" ] })pbtxt"),
      R"json({"name":"dynamic","platform":"","backend":"identity","runtime":"","version_policy":{"specific":{"versions":[1]}},"max_batch_size":16,"input":[{"name":"INPUT0","data_type":"TYPE_STRING","format":"FORMAT_NONE","dims":[1],"reshape":{"shape":[]},"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"OUTPUT0","data_type":"TYPE_STRING","dims":[1],"reshape":{"shape":[]},"label_filename":"labels.txt","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"graph":{"level":1},"priority":"PRIORITY_MAX","cuda":{"graphs":true,"busy_wait_events":false,"graph_spec":[{"batch_size":4,"input":{"INPUT0":{"dim":["4","9007199254740993"]}},"graph_lower_bound":{"batch_size":1,"input":{"INPUT0":{"dim":["4","1"]}}}}],"output_copy_stream":true},"execution_accelerators":{"gpu_execution_accelerator":[{"name":"tensorrt","parameters":{"precision_mode":"FP16"}}],"cpu_execution_accelerator":[{"name":"openvino","parameters":{}}]},"input_pinned_memory":{"enable":false},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":3,"eager_batching":true},"dynamic_batching":{"preferred_batch_size":[4,8],"max_queue_delay_microseconds":100,"preserve_ordering":false,"priority_levels":18446744073709551615,"default_priority_level":18446744073709551615,"default_queue_policy":{"timeout_action":"DELAY","default_timeout_microseconds":5000000000,"allow_timeout_override":true,"max_queue_size":10},"priority_queue_policy":{"1":{"timeout_action":"REJECT","default_timeout_microseconds":9007199254740993,"allow_timeout_override":false,"max_queue_size":0}}},"instance_group":[{"name":"dynamic_0","kind":"KIND_CPU","count":2,"rate_limiter":{"resources":[{"name":"R1","global":true,"count":3}],"priority":2},"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":"policy_0"}],"default_model_filename":"model.bin","cc_model_filenames":{"7.5":"model75.onnx"},"metric_tags":{"team":"a"},"parameters":{"quote\"d \\ \n tab\t é":{"string_value":"v </script> \u0001"}},"model_warmup":[],"model_operations":{"op_library_filename":["a.so","b.so"]},"model_transaction_policy":{"decoupled":false},"response_cache":{"enable":false}})json");
}

TEST(ConfigJson, KeepsTheDimsOfInitialStatesStrings) {
  EXPECT_EQ(
      Served("sequence", R"pbtxt(backend: "identity"
max_batch_size: 4
input [{ name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] allow_ragged_batch: true optional: true }]
output [{ name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] }]
sequence_batching {
  control_input [
    { name: "START" control [{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }] },
    { name: "READY" control [{ kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1.5 ] }] },
    { name: "END" control [{ kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] }] },
    { name: "CORRID" control [{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }] }
  ]
  state [{ input_name: "SI" output_name: "SO" data_type: TYPE_INT32 dims: [ 1, -1 ] initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1, 4 ] zero_data: true } }]
  oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 7 }
}
instance_group [{ kind: KIND_CPU }])pbtxt"),
      R"json({"name":"sequence","platform":"","backend":"identity","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":4,"input":[{"name":"INPUT0","data_type":"TYPE_INT32","format":"FORMAT_NONE","dims":[1],"is_shape_tensor":false,"allow_ragged_batch":true,"optional":true,"is_non_linear_format_io":false}],"output":[{"name":"OUTPUT0","data_type":"TYPE_INT32","dims":[1],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"sequence_batching":{"oldest":{"max_candidate_sequences":4,"preferred_batch_size":[4],"max_queue_delay_microseconds":7,"preserve_ordering":false},"max_sequence_idle_microseconds":1000000,"control_input":[{"name":"START","control":[{"kind":"CONTROL_SEQUENCE_START","int32_false_true":[0,1],"fp32_false_true":[],"bool_false_true":[],"data_type":"TYPE_INVALID"}]},{"name":"READY","control":[{"kind":"CONTROL_SEQUENCE_READY","int32_false_true":[],"fp32_false_true":[0,1.5],"bool_false_true":[],"data_type":"TYPE_INVALID"}]},{"name":"END","control":[{"kind":"CONTROL_SEQUENCE_END","int32_false_true":[],"fp32_false_true":[],"bool_false_true":[false,true],"data_type":"TYPE_INVALID"}]},{"name":"CORRID","control":[{"kind":"CONTROL_SEQUENCE_CORRID","int32_false_true":[],"fp32_false_true":[],"bool_false_true":[],"data_type":"TYPE_UINT64"}]}],"state":[{"input_name":"SI","output_name":"SO","data_type":"TYPE_INT32","dims":[1,-1],"initial_state":[{"data_type":"TYPE_INT32","dims":["1","4"],"name":"zero","zero_data":true}],"use_same_buffer_for_input_output":false,"use_growable_memory":false}],"iterative_sequence":false},"instance_group":[{"name":"sequence_0","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]})json");
}

TEST(ConfigJson, PrintsFloatsShortly) {
  EXPECT_EQ(
      Served("direct", R"pbtxt(backend: "identity"
max_batch_size: 4
input [{ name: "INPUT0" data_type: TYPE_BF16 dims: [ 1 ] }]
output [{ name: "OUTPUT0" data_type: TYPE_BF16 dims: [ 1 ] }]
sequence_batching { max_sequence_idle_microseconds: 5000000 direct { max_queue_delay_microseconds: 3 minimum_slot_utilization: 0.7 } }
version_policy { all { } })pbtxt"),
      R"json({"name":"direct","platform":"","backend":"identity","runtime":"","version_policy":{"all":{}},"max_batch_size":4,"input":[{"name":"INPUT0","data_type":"TYPE_BF16","format":"FORMAT_NONE","dims":[1],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"OUTPUT0","data_type":"TYPE_BF16","dims":[1],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"sequence_batching":{"direct":{"max_queue_delay_microseconds":3,"minimum_slot_utilization":0.7},"max_sequence_idle_microseconds":5000000,"control_input":[],"state":[],"iterative_sequence":false},"instance_group":[{"name":"direct","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]})json");
}

TEST(ConfigJson, PrintsBatchInputsAndWarmup) {
  EXPECT_EQ(
      Served("warm", R"pbtxt(backend: "identity"
max_batch_size: 2
input [{ name: "INPUT0" data_type: TYPE_FP32 dims: [ 3 ] format: FORMAT_NONE }]
output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 3 ] }]
batch_input [{ kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_FP32 source_input: "INPUT0" }]
batch_output [{ target_name: "OUTPUT0" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "INPUT0" }]
model_warmup [{ name: "w" batch_size: 1 inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } } count: 2 }]
version_policy { latest { num_versions: 3 } }
dynamic_batching { })pbtxt"),
      R"json({"name":"warm","platform":"","backend":"identity","runtime":"","version_policy":{"latest":{"num_versions":3}},"max_batch_size":2,"input":[{"name":"INPUT0","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[3],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[3],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[{"kind":"BATCH_ELEMENT_COUNT","target_name":["COUNT"],"data_type":"TYPE_FP32","source_input":["INPUT0"]}],"batch_output":[{"target_name":["OUTPUT0"],"kind":"BATCH_SCATTER_WITH_INPUT_SHAPE","source_input":["INPUT0"]}],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"dynamic_batching":{"preferred_batch_size":[2],"max_queue_delay_microseconds":0,"preserve_ordering":false,"priority_levels":0,"default_priority_level":0,"priority_queue_policy":{}},"instance_group":[{"name":"warm","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[{"name":"w","batch_size":1,"inputs":{"INPUT0":{"data_type":"TYPE_FP32","dims":[3],"zero_data":true}},"count":2}]})json");
}

// The version of the reference server for these strings lacks max_inflight_requests, and derives an
// ensemble's decoupled flag from its steps, which is not done in this module.
TEST(ConfigJson, PrintsAnEnsembleWithoutInstancesAndOptimization) {
  EXPECT_EQ(
      Served("ens", R"pbtxt(platform: "ensemble"
max_batch_size: 8
input [{ name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }]
output [{ name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }]
ensemble_scheduling { step [{ model_name: "minimal" model_version: -1 input_map { key: "INPUT0" value: "IN" } output_map { key: "OUTPUT0" value: "OUT" } }] })pbtxt"),
      R"json({"name":"ens","platform":"ensemble","backend":"","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":8,"input":[{"name":"IN","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[-1],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"OUT","data_type":"TYPE_FP32","dims":[-1],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"ensemble_scheduling":{"step":[{"model_name":"minimal","model_version":-1,"input_map":{"INPUT0":"IN"},"output_map":{"OUTPUT0":"OUT"},"model_namespace":""}],"max_inflight_requests":0},"instance_group":[],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]})json");
}

TEST(ConfigJson, OfNothingIsEmpty) { EXPECT_EQ(*ToJson(ModelConfig()), ""); }

TEST(ConfigJson, KnowsOnlyVersionOne) {
  ModelConfig config{.name = "m"};
  EXPECT_EQ(ToJson(config, 2).status().message(),
            "model configuration version 2 not supported, supported versions are: 1");
  EXPECT_EQ(ParseModelConfigJson("{}", 2).status().message(),
            "model configuration version 2 not supported, supported versions are: 1");
}

TEST(ConfigJson, PrintsMapsInKeyOrder) {
  ModelConfig config{.name = "m"};
  for (const char* key : {"z", "b", "a", "q", "c", "y"}) config.parameters[key] = key;
  const std::string json = *ToJson(config);
  EXPECT_NE(json.find(R"("parameters":{"a":{"string_value":"a"},"b":{"string_value":"b"},"c":)"),
            std::string::npos)
      << json;
}

TEST(ConfigJson, SurvivesReadingBack) {
  ModelConfig config{
      .name = "m", .backend = "identity", .max_batch_size = 4, .gives_max_batch_size = true};
  config.input.push_back({.name = "I", .data_type = tensor::DataType::kFp32, .dims = {-1, 3}});
  config.scheduling_choice = DynamicBatching{.preferred_batch_size = {2, 4},
                                             .priority_levels = 18446744073709551615u,
                                             .default_priority_level = 1};
  config.decoupled = true;
  EXPECT_EQ(*ParseModelConfigJson(*ToJson(config)), config);
}

TEST(ConfigJson, PrintsBytesThatAreNotUtf8) {
  ModelConfig config{.name = "m"};
  config.parameters["k"] = "\xff\xfe";
  const auto json = ToJson(config);
  if (!json.ok()) {
    EXPECT_EQ(json.status().code(), base::StatusCode::kInternal);
  }
}

}  // namespace
}  // namespace nereid::config
