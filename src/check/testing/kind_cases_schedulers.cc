// SPDX-License-Identifier: Apache-2.0
#include "check/testing/kind_cases.h"

namespace nereid::check {
namespace {

Files Dynamic(std::string_view settings) {
  return PlainModel("dynamic_batching {\n  " + std::string(settings) + "\n}\n");
}

Files Sequence(std::string_view settings, const Files& others = {}) {
  return PlainModel("sequence_batching {\n  " + std::string(settings) + "\n}\n", others);
}

Files Control(std::string_view control) {
  return Sequence("control_input { name: \"C\" control { " + std::string(control) + " } }");
}

Files WarmUp(std::string_view input, const Files& others = {}) {
  return PlainModel(
      "model_warmup {\n  name: \"s\" batch_size: 1\n  inputs { key: \"INPUT0\" value { " +
          std::string(input) + " } }\n}\n",
      others);
}

void AddBatching(std::vector<KindCase>& cases) {
  const std::vector<KindCase> more = {
      {"batch-size-negative", "m/config.pbtxt:2:17", "0",
       Model("backend: \"identity\"\nmax_batch_size: -1\n")},
      {"preferred-size-range", "m/config.pbtxt:6:30", "max_batch_size",
       Dynamic("preferred_batch_size: [ 2, 8 ]")},
      {"preferred-without-delay", "m/config.pbtxt:6:3", "max_queue_delay",
       Dynamic("preferred_batch_size: [ 2 ]")},
      {"delay-large", "m/config.pbtxt:6:33", "microseconds",
       Dynamic("max_queue_delay_microseconds: 5000000")},
      {"batching-disabled", "m/config.pbtxt:2:1", "max_batch_size",
       Model("backend: \"identity\"\ndynamic_batching { }\n")},
      {"batch-size-one", "m/config.pbtxt:3:1", "Raise",
       Model("backend: \"identity\"\nmax_batch_size: 1\ndynamic_batching { }\n")},
      {"priority-default", "m/config.pbtxt:5:1", "1 to priority_levels",
       Dynamic("priority_levels: 2")},
      {"priority-policy-level", "m/config.pbtxt:6:77", "1 to priority_levels",
       Dynamic("priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 3 value "
               "{ } }")},
      {"priority-unused", "m/config.pbtxt:6:27", "Set priority_levels",
       Dynamic("default_priority_level: 1")},
      {"ordering-priorities", "m/config.pbtxt:6:44", "preserve_ordering",
       Dynamic("preserve_ordering: true priority_levels: 2 default_priority_level: 1")},
      {"ordering-delay", "m/config.pbtxt:6:66", "REJECT",
       Dynamic("preserve_ordering: true default_queue_policy { timeout_action: DELAY "
               "default_timeout_microseconds: 1 }")},
      {"timeout-unused", "m/config.pbtxt:6:42", "default_timeout",
       Dynamic("default_queue_policy { timeout_action: DELAY }")},
      {"timeout-before-delay", "m/config.pbtxt:6:90", "longer",
       Dynamic("max_queue_delay_microseconds: 500 default_queue_policy { "
               "default_timeout_microseconds: 100 }")},
      {"queue-size-small", "m/config.pbtxt:6:42", "at least",
       Dynamic("default_queue_policy { max_queue_size: 2 }")},
      {"ragged-unused", "m/config.pbtxt:5:73", "dynamic_batching",
       PlainModel(
           "input { name: \"INPUT1\" data_type: TYPE_FP32 dims: 2 allow_ragged_batch: true }\n"
           "output { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: 2 }\n")},
      {"batch-strategy-sequence", "m/config.pbtxt:5:19", "Remove",
       PlainModel(
           "parameters { key: \"TRITON_BATCH_STRATEGY_PATH\" value { string_value: \"x\" } }\n"
           "sequence_batching { }\n")},
      {"cache-decoupled", "m/config.pbtxt:6:26", "Remove",
       PlainModel(
           "model_transaction_policy { decoupled: true }\nresponse_cache { enable: true }\n")},
      {"cache-sequence", "m/config.pbtxt:6:26", "Remove",
       PlainModel("sequence_batching { }\nresponse_cache { enable: true }\n")},
      {"cache-flag", "m/config.pbtxt:5:26", "--cache-config",
       PlainModel("response_cache { enable: true }\n")},
  };
  cases.insert(cases.end(), more.begin(), more.end());
}

void AddSequences(std::vector<KindCase>& cases) {
  const std::string state =
      "state {\n    input_name: \"I\" output_name: \"O\" data_type: TYPE_FP32 dims: 1\n    ";
  const std::vector<KindCase> more = {
      {"control-name", "m/config.pbtxt:6:17", "name",
       Sequence("control_input { control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] "
                "} }")},
      {"control-tensor-twice", "m/config.pbtxt:6:53", "one entry",
       Sequence("control_input { name: \"C\" } control_input { name: \"C\" }")},
      {"control-kind-twice", "m/config.pbtxt:7:45", "Remove one",
       Sequence("control_input { name: \"C\" control { int32_false_true: [ 0, 1 ] } }\n"
                "  control_input { name: \"D\" control { kind: CONTROL_SEQUENCE_START "
                "int32_false_true: [ 0, 1 ] } }")},
      {"control-values", "m/config.pbtxt:6:37", "int32_false_true",
       Control("kind: CONTROL_SEQUENCE_END")},
      {"control-correlation-id", "m/config.pbtxt:6:37", "TYPE_UINT64",
       Control("kind: CONTROL_SEQUENCE_CORRID")},
      {"slot-utilization", "m/config.pbtxt:6:38", "0.5",
       Sequence("direct { minimum_slot_utilization: 1.5 max_queue_delay_microseconds: 1 }")},
      {"slot-utilization-unused", "m/config.pbtxt:6:38", "Set both",
       Sequence("direct { minimum_slot_utilization: 0.5 }")},
      {"sequence-slots", "m/config.pbtxt:5:1", "Lower",
       Sequence("oldest { max_candidate_sequences: 2000000 }")},
      {"sequence-candidates", "m/config.pbtxt:6:37", "Raise",
       Sequence("oldest { max_candidate_sequences: 2 }")},
      {"sequence-idle-short", "m/config.pbtxt:6:35", "microseconds",
       Sequence("max_sequence_idle_microseconds: 5")},
      {"state-setting", "m/config.pbtxt:6:9", "",
       Sequence(
           state +
           "initial_state { name: \"z\" data_type: TYPE_INT32 dims: 1 zero_data: true }\n  }")},
      {"state-twice", "m/config.pbtxt:10:9", "Remove one",
       Sequence(state + "\n  }\n  " + state + "\n  }")},
      {"state-file", "m/config.pbtxt:8:71", "initial_state",
       Sequence(
           state +
           "initial_state { name: \"z\" data_type: TYPE_FP32 dims: 1 data_file: \"zeros\" }\n  }")},
  };
  cases.insert(cases.end(), more.begin(), more.end());
}

void AddInstances(std::vector<KindCase>& cases) {
  const std::vector<KindCase> more = {
      {"instances-limit", "m/config.pbtxt:5:1", "Lower",
       PlainModel("instance_group { kind: KIND_CPU count: 5000 }\n")},
      {"instances-many", "m/config.pbtxt:5:1", "slow",
       PlainModel("instance_group { kind: KIND_CPU count: 64 }\n")},
      {"group-count", "m/config.pbtxt:5:25", "at least 1",
       PlainModel("instance_group { count: 0 }\n")},
      {"group-kind", "m/config.pbtxt:5:24", "KIND_CPU", PlainModel("instance_group { kind: 9 }\n")},
      {"group-cpu-gpus", "m/config.pbtxt:5:33", "KIND_GPU",
       PlainModel("instance_group { kind: KIND_CPU gpus: [ 0 ] }\n")},
      {"gpu-unavailable", "m/config.pbtxt:5:24", "--ignore",
       PlainModel("instance_group { kind: KIND_GPU }\n")},
      {"group-profile", "m/config.pbtxt:5:33", "Remove",
       PlainModel("instance_group { kind: KIND_CPU profile: \"0\" }\n")},
      {"group-all-passive", "m/config.pbtxt:5:1", "passive",
       PlainModel("instance_group { kind: KIND_CPU passive: true }\n")},
      {"warm-up-limit", "m/config.pbtxt:5:47", "Lower",
       PlainModel("model_warmup { name: \"s\" batch_size: 1 count: 1000000 }\n")},
      {"warm-up-unused", "m/config.pbtxt:5:14", "batch_size: 1",
       PlainModel("model_warmup { name: \"s\" }\n")},
      {"warm-up-batch", "m/config.pbtxt:5:38", "max_batch_size",
       PlainModel("model_warmup { name: \"s\" batch_size: 9 }\n")},
      {"warm-up-dims", "m/config.pbtxt:7:55", "size",
       WarmUp("data_type: TYPE_FP32 dims: -1 zero_data: true")},
      {"warm-up-data", "m/config.pbtxt:7:17", "zero_data", WarmUp("data_type: TYPE_FP32 dims: 2")},
      {"warm-up-file", "m/config.pbtxt:7:80", "folder warmup",
       WarmUp("data_type: TYPE_FP32 dims: 2 input_data_file: \"d\"")},
      {"warm-up-input", "m/config.pbtxt:5:14", "the inputs of the model",
       PlainModel("model_warmup { name: \"s\" batch_size: 1 }\n")},
      {"warm-up-mismatch", "m/config.pbtxt:7:45", "type and a shape",
       WarmUp("data_type: TYPE_INT8 dims: 2 zero_data: true")},
  };
  cases.insert(cases.end(), more.begin(), more.end());
}

}  // namespace

std::vector<KindCase> SchedulerCases() {
  std::vector<KindCase> cases;
  AddBatching(cases);
  AddSequences(cases);
  AddInstances(cases);
  return cases;
}

}  // namespace nereid::check
