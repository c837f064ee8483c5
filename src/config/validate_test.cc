// SPDX-License-Identifier: Apache-2.0
#include "config/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/complete.h"
#include "config/parse.h"

namespace nereid::config {
namespace {

constexpr const char* kTensors =
    "input { name: 'I' data_type: TYPE_FP32 dims: [ 1 ] } "
    "output { name: 'O' data_type: TYPE_FP32 dims: [ 1 ] } ";

ModelConfig Prepared(const std::string& text) {
  auto config = ParseModelConfigText(text, "t");
  EXPECT_TRUE(config.ok()) << config.status().message();
  if (!config.ok()) return {};
  auto completed = CompleteFromFiles(*config, "m", {});
  return Normalize(completed.ok() ? *completed : *config);
}

// Returns the first line of the message, which clients of Triton match.
std::string FirstLine(const base::Status& status) {
  const std::string_view message = status.message();
  return status.ok() ? "valid" : std::string(message.substr(0, message.find('\n')));
}

std::string Config(const std::string& text) {
  return FirstLine(ValidateModelConfig(Prepared(text)));
}
std::string Tensors(const std::string& text) { return FirstLine(ValidateTensors(Prepared(text))); }
std::string Groups(const std::string& text, const GpuSupport& support = {}) {
  return FirstLine(
      ValidateInstanceGroups(NormalizeInstanceGroups(Prepared(text), {}, support.gpus), support));
}
std::string Identity(const std::string& more) {
  return Config(std::string("backend: 'identity' max_batch_size: 8 ") + kTensors + more);
}

TEST(ValidateModelConfig, AcceptsTheOrdinary) {
  EXPECT_EQ(Identity(""), "valid");
  EXPECT_EQ(Identity("dynamic_batching { preferred_batch_size: [ 4, 8 ] }"), "valid");
  EXPECT_EQ(Identity("sequence_batching { direct { } }"), "valid");
  EXPECT_EQ(Identity("model_metrics { metric_control { metric_identifier { family: 'f' } "
                     "histogram_options { buckets: [ 1 ] } } }"),
            "valid");
}

TEST(ValidateModelConfig, MatchesPlatformAndBackend) {
  EXPECT_EQ(FirstLine(ValidateModelConfig({})), "model configuration must specify 'name'");
  EXPECT_EQ(Config("platform: 'nothing'"), "unexpected platform type 'nothing' for m");
  EXPECT_EQ(Config("backend: 'x' platform: 'ensemble'"),
            "Ensemble model 'm' must have platform type 'ensemble' and empty backend type");
  EXPECT_EQ(Config("backend: 'onnxruntime' platform: 'onnxruntim'"),
            "unexpected 'platform' and 'backend' pair, got:onnxruntim, onnxruntime");
  EXPECT_EQ(Config("platform: 'ensemble'"),
            "ensemble scheduling must be set for ensemble m whose platform is ensemble");
  for (const char* pair :
       {"backend: 'onnxruntime' platform: 'onnxruntime_onnx'",
        "backend: 'tensorrt' platform: 'tensorrt_plan'",
        "backend: 'tensorflow' platform: 'tensorflow_graphdef'",
        "backend: 'tensorflow' platform: 'tensorflow_savedmodel'",
        "backend: 'pytorch' platform: 'pytorch_libtorch'",
        "backend: 'pytorch' platform: 'torch_aoti'", "backend: 'mine' platform: 'any'",
        "platform: 'caffe2_netdef'", "platform: 'custom'"}) {
    EXPECT_EQ(Config(pair), "valid") << pair;
  }
}

TEST(ValidateModelConfig, BoundsTheBatchSize) {
  EXPECT_EQ(Config("backend: 'b' max_batch_size: -1"),
            "'max_batch_size' must be non-negative value for m");
  ModelConfig config = Prepared("backend: 'b'");
  config.version_policy.reset();
  EXPECT_EQ(FirstLine(ValidateModelConfig(config)), "must specify 'version policy' for m");
}

TEST(ValidateModelConfig, RefusesADuplicateName) {
  EXPECT_EQ(Config("backend: 'b' input { name: 'I' data_type: TYPE_FP32 dims: [ 1 ] } "
                   "input { name: 'I' data_type: TYPE_INT8 dims: [ 2 ] }"),
            "model input 'I' is configured twice for m");
  EXPECT_EQ(Config("backend: 'b' output { name: 'O' data_type: TYPE_FP32 dims: [ 1 ] } "
                   "output { name: 'O' data_type: TYPE_FP32 dims: [ 1 ] }"),
            "model output 'O' is configured twice for m");
  EXPECT_EQ(Config("backend: 'b' input { name: 'X' data_type: TYPE_FP32 dims: [ 1 ] } "
                   "output { name: 'X' data_type: TYPE_FP32 dims: [ 1 ] }"),
            "valid");
}

TEST(ValidateModelConfig, ChecksDynamicBatching) {
  const auto check = [](const std::string& text) {
    return Identity("dynamic_batching { " + text + " }");
  };
  EXPECT_EQ(check("preferred_batch_size: 0"),
            "dynamic batching preferred size must be positive for m");
  EXPECT_EQ(check("preferred_batch_size: 9"),
            "dynamic batching preferred size must be <= max batch size for m");
  EXPECT_EQ(check("priority_levels: 3"), "default priority level must be in range [1, 3] for m");
  EXPECT_EQ(check("priority_levels: 3 default_priority_level: 4"),
            "default priority level must be in range [1, 3] for m");
  EXPECT_EQ(
      check("priority_levels: 3 default_priority_level: 3 priority_queue_policy { key: 4 value "
            "{ } }"),
      "priority queue policy must have priority level in range [1, 3] for m");
  EXPECT_EQ(
      check("priority_levels: 3 default_priority_level: 3 priority_queue_policy { key: 0 value "
            "{ } }"),
      "priority queue policy must have priority level in range [1, 3] for m");
  EXPECT_EQ(check("priority_levels: 18446744073709551615 default_priority_level: 9"), "valid");
  EXPECT_EQ(check("preserve_ordering: true priority_levels: 2 default_priority_level: 1"),
            "Only one priority level is allowed when 'preserve_ordering' is true for m");
  const std::string delay = "{ timeout_action: DELAY default_timeout_microseconds: 5 }";
  EXPECT_EQ(
      check("preserve_ordering: true default_queue_policy " + delay),
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m");
  EXPECT_EQ(
      check("preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
            "priority_queue_policy { key: 1 value " +
            delay + " }"),
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m");
  EXPECT_EQ(check("preserve_ordering: true default_queue_policy { timeout_action: DELAY }"),
            "valid");
}

std::string Sequence(const std::string& text) {
  return Identity("sequence_batching { " + text + " }");
}
std::string Control(const std::string& text) {
  return Sequence("control_input { name: 'C' control { " + text + " } }");
}

TEST(ValidateModelConfig, ChecksTheStrategyOfSequences) {
  EXPECT_EQ(Sequence("oldest { preferred_batch_size: 0 }"),
            "sequence batching preferred batch size must be positive for m");
  EXPECT_EQ(Sequence("oldest { preferred_batch_size: 9 }"),
            "sequence batching preferred batch size must be <= max batch size for m");
  for (const char* utilization : {"-0.1", "1.1", "nan", "inf"}) {
    EXPECT_EQ(Sequence(std::string("direct { minimum_slot_utilization: ") + utilization + " }"),
              "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m");
  }
  EXPECT_EQ(Sequence("direct { minimum_slot_utilization: 1.0 }"), "valid");
}

TEST(ValidateModelConfig, ChecksBooleanControls) {
  for (const std::string kind : {"START", "END", "READY"}) {
    const std::string name = "CONTROL_SEQUENCE_" + kind;
    const std::string start = "kind: " + name + " ";
    EXPECT_EQ(Control(start + "int32_false_true: [ 0, 1 ]"), "valid");
    EXPECT_EQ(Control(start),
              "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
              "'bool_false_true' for " +
                  name + " for m");
    EXPECT_EQ(
        Control(start + "int32_false_true: [ 0, 1 ] bool_false_true: [ false, true ]"),
        "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' "
        "and 'bool_false_true' for " +
            name + " for m");
    for (const std::string values : {"int32_false_true", "fp32_false_true", "bool_false_true"}) {
      EXPECT_EQ(Control(start + values + ": [ 1 ]"), "sequence batching control '" + values +
                                                         "' must have exactly 2 entries for " +
                                                         name + " for m");
    }
    const std::string two = "control { " + start + "int32_false_true: [ 0, 1 ] } ";
    EXPECT_EQ(
        Sequence("control_input { name: 'A' " + two + "} control_input { name: 'B' " + two + "}"),
        "sequence batching specifies multiple " + name + " tensors for m");
  }
}

TEST(ValidateModelConfig, ChecksControlTensors) {
  EXPECT_EQ(Sequence("control_input { }"),
            "sequence batching control tensor must have a name for m");
  EXPECT_EQ(Sequence("control_input { name: 'A' } control_input { name: 'A' }"),
            "sequence batching control tensor 'A' is specified for multiple control kinds for m");
}

TEST(ValidateModelConfig, ChecksTheTypeOfTheCorrelationId) {
  for (const char* type : {"UINT64", "INT64", "UINT32", "INT32", "STRING"}) {
    EXPECT_EQ(Control(std::string("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_") + type),
              "valid");
  }
  for (const char* type : {"INVALID", "BOOL", "FP32", "UINT8", "INT16", "BF16"}) {
    EXPECT_EQ(
        Control(std::string("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_") + type),
        "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are "
        "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING");
  }
  EXPECT_EQ(
      Control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 int32_false_true: [ 0, 1 ]"),
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or "
      "'bool_false_true' for CONTROL_SEQUENCE_CORRID for m");
}

TEST(ValidateModelConfig, RefusesTheCacheWhereItCannotWork) {
  EXPECT_EQ(Identity("response_cache { enable: true } sequence_batching { }"),
            "Response Cache does not currently support model m with sequence batching scheduler. "
            "Please disable the response cache.");
  EXPECT_EQ(
      Identity("response_cache { enable: true } model_transaction_policy { decoupled: true }"),
      "Response Cache does not currently support model m with 'decoupled' transaction policy. "
      "Please disable the response cache.");
  EXPECT_EQ(Identity("response_cache { enable: true } dynamic_batching { }"), "valid");
}

TEST(ValidateModelConfig, ChecksMetrics) {
  const auto check = [](const std::string& text) {
    return Identity("model_metrics { metric_control { " + text + " } }");
  };
  EXPECT_EQ(check(""), "metric control must specify 'metric_identifier'");
  EXPECT_EQ(check("metric_identifier { }"), "metric identifier must specify non-empty 'family'");
  EXPECT_EQ(check("metric_identifier { family: 'f' }"),
            "metric control must specify 'histogram_options'");
  EXPECT_EQ(check("metric_identifier { family: 'f' } histogram_options { }"),
            "histogram options must specify non-empty 'buckets'");
  const auto with_buckets = [&](const std::string& buckets) {
    return check("metric_identifier { family: 'f' } histogram_options { buckets: [ " + buckets +
                 " ] }");
  };
  EXPECT_EQ(with_buckets("-1, 0, 0.5, 3"), "valid");
  for (const char* buckets : {"5, 1", "1, 1", "nan", "1, nan", "1, inf", "-inf, 1"}) {
    EXPECT_EQ(with_buckets(buckets),
              "histogram options must specify finite 'buckets' in strictly ascending order")
        << buckets;
  }
}

TEST(ValidateModelConfig, TakesOnlyTagsThatCanBeLabels) {
  const auto check = [](const std::string& key) {
    return Identity("metric_tags { key: '" + key + R"(' value: 'any \n \" text' })");
  };
  for (const char* key : {"", "team", "Team_2", "2", "_"}) EXPECT_EQ(check(key), "valid") << key;
  for (const char* key : {"a b", R"(a\"b)", "a-b", "a.b", "größe", "a:b"}) {
    EXPECT_THAT(check(key), testing::HasSubstr(" of m cannot be the name of a label")) << key;
  }
  const base::Status status =
      ValidateModelConfig(Prepared(std::string("backend: 'identity' ") + kTensors +
                                   "metric_tags { key: 'a b' value: '' }"),
                          "config.pbtxt");
  EXPECT_EQ(status.message(),
            "metric tag 'a b' of m cannot be the name of a label\n"
            "  config.pbtxt: metric_tags['a b']: found 'a b', expected letters without accents, "
            "digits and underscores");
}

std::string Ensemble(const std::string& text) {
  return Config(
      "platform: 'ensemble' input { name: 'in' data_type: TYPE_FP32 dims: [ 1 ] } output { name: "
      "'out' "
      "data_type: TYPE_FP32 dims: [ 1 ] } " +
      text);
}
std::string Step(const std::string& from, const std::string& to) {
  return "step { model_name: 'a' input_map { key: 'I' value: '" + from +
         "' } output_map { key: 'O' "
         "value: '" +
         to + "' } } ";
}

TEST(ValidateModelConfig, ChecksWhatAnEnsembleMayHave) {
  const std::string steps = "ensemble_scheduling { " + Step("in", "out") + " } ";
  EXPECT_EQ(Ensemble(steps), "valid");
  EXPECT_EQ(Config("backend: 'b' " + steps),
            "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble");
  EXPECT_EQ(Ensemble(steps + "instance_group { }"),
            "instance group should not be specified for ensemble 'm'");
  EXPECT_EQ(Ensemble(steps + "optimization { }"),
            "optimization should not be specified for ensemble 'm'");
  EXPECT_EQ(Ensemble(steps + "model_warmup { }"),
            "model_warmup can not be specified for ensemble 'm'");
  EXPECT_EQ(Ensemble("ensemble_scheduling { }"), "must specify 'step' for ensemble 'm'");
  EXPECT_EQ(Ensemble("ensemble_scheduling { step { } }"),
            "must specify 'model_name' in step 0 of ensemble 'm'");
  EXPECT_EQ(Ensemble("ensemble_scheduling { " + Step("in", "out") + "step { model_name: 'a' } }"),
            "must specify 'input_map' in step 1 of ensemble 'm'");
  EXPECT_EQ(
      Ensemble(
          "ensemble_scheduling { step { model_name: 'a' input_map { key: 'k' value: 'v' } } }"),
      "must specify 'output_map' in step 0 of ensemble 'm'");
}

TEST(ValidateModelConfig, FollowsTheDataThroughAnEnsemble) {
  const auto check = [](const std::string& steps) {
    return Ensemble("ensemble_scheduling { " + steps + " }");
  };
  EXPECT_EQ(check(Step("in", "t") + Step("t", "out")), "valid");
  EXPECT_EQ(check(Step("t", "out") + Step("in", "t")), "valid");
  EXPECT_EQ(check(Step("in", "out") + Step("in", "out")),
            "ensemble tensor 'out' can appear in an output map only once for ensemble 'm' step 1");
  EXPECT_EQ(check(Step("other", "out")), "ensemble input 'in' for ensemble m' is not used");
  EXPECT_EQ(check(Step("in", "t")), "ensemble output 'out' for ensemble m' is not used");
  EXPECT_EQ(check(Step("in", "x") + Step("y", "out")),
            "output 'out' for ensemble 'm' is not written: at least one of its depending tensors, "
            "'y', is not connected");
  EXPECT_EQ(check(Step("in", "out") + Step("in", "unread")),
            "ensemble tensor 'unread' is unused in ensemble 'm'");
  // A cycle is neither ready nor does it hang the check.
  EXPECT_THAT(check(Step("in", "x") + Step("y", "z") + Step("z", "y") + Step("y", "out")),
              testing::StartsWith("output 'out' for ensemble 'm' is not written"));
}

std::string Input(const std::string& text, int max_batch_size = 0) {
  return Tensors("backend: 'b' max_batch_size: " + std::to_string(max_batch_size) + " input { " +
                 text + " }");
}

TEST(ValidateTensors, RequiresNameTypeAndDims) {
  EXPECT_EQ(Input("data_type: TYPE_FP32 dims: [ 1 ]"), "model input must specify 'name' for m");
  EXPECT_EQ(Input("name: 'I' dims: [ 1 ]"), "model input 'I' must specify 'data_type' for m");
  EXPECT_EQ(Input("name: 'I' data_type: TYPE_FP32"), "model input 'I' must specify 'dims' for m");
  EXPECT_EQ(Tensors("backend: 'b' output { name: 'O' dims: [ 1 ] }"),
            "model output 'O' must specify 'data_type' for m");
}

TEST(ValidateTensors, AcceptsEveryDataType) {
  for (int type = 1; type < tensor::kDataTypeCount; ++type) {
    EXPECT_EQ(Input("name: 'I' dims: [ -1, 3 ] data_type: " + std::to_string(type)), "valid");
  }
  EXPECT_EQ(Input("name: 'I' dims: [ 1 ] data_type: 77"),
            "model input 'I' must specify 'data_type' for m");
}

TEST(ValidateTensors, ChecksDimensions) {
  for (const char* dims : {"0", "-2", "3, 0", "-9223372036854775808"}) {
    EXPECT_EQ(Input(std::string("name: 'I' data_type: TYPE_FP32 dims: [ ") + dims + " ]"),
              "model input 'I' dimension must be integer >= 1, or -1 to indicate a variable-size "
              "dimension for m");
  }
}

std::string Reshape(const std::string& dims, const std::string& shape, int max_batch_size = 4) {
  return Input(
      "name: 'I' data_type: TYPE_FP32 dims: [ " + dims + " ] reshape { shape: [ " + shape + " ] }",
      max_batch_size);
}

TEST(ValidateTensors, ComparesReshapeWithDims) {
  EXPECT_EQ(Reshape("1", ""), "valid");
  EXPECT_EQ(Reshape("1, 1", ""), "valid");
  EXPECT_EQ(Reshape("2, 4, -1, 6", "8, -1, 1, 6"), "valid");
  EXPECT_EQ(Reshape("4, 4", "16"), "valid");
  EXPECT_EQ(
      Reshape("1", "", 0),
      "model input 'I' cannot have empty reshape for non-batching model as scalar tensors are not "
      "supported for m");
  EXPECT_EQ(Reshape("1", "0"),
            "model input 'I' reshape dimensions must be integer >= 1, or -1 to indicate a "
            "variable-size dimension for m");
  const std::string different = "model input 'I' has different size for dims and reshape for m";
  EXPECT_EQ(Reshape("4", "5"), different);
  EXPECT_EQ(Reshape("2", ""), different);
  EXPECT_EQ(Reshape("-1", "4"), different);
  EXPECT_EQ(Reshape("2, -1", "3, -1"), different);
  EXPECT_EQ(
      Reshape("-1, -1", "-1"),
      "model input 'I' has different number of variable-size dimensions for dims and reshape for "
      "m");
}

TEST(ValidateTensors, DoesNotOverflow) {
  EXPECT_EQ(Reshape("4611686018427387904, 4", "4"),
            "element count for tensor 'I dims' exceeds maximum size of 9223372036854775807 for m");
  EXPECT_EQ(Reshape("-1, 4611686018427387904, 4", "-1, 4611686018427387904, 4"),
            "model input 'I' has different size for dims and reshape for m");
}

TEST(ValidateTensors, ChecksFormatsOfOneFramework) {
  const std::string fp32 = "name: 'I' data_type: TYPE_FP32 ";
  EXPECT_EQ(Input(fp32 + "dims: [ 1, 2 ] format: FORMAT_NHWC"),
            "model input NHWC/NCHW require 3 dims for m");
  EXPECT_EQ(Input(fp32 + "dims: [ 1, 2, 3 ] format: FORMAT_NCHW"), "valid");
  EXPECT_EQ(Input(fp32 + "dims: [ 1 ] is_shape_tensor: true"),
            "shape tensors are only supported for TensorRT platform for m");
  EXPECT_EQ(Input(fp32 + "dims: [ 1 ] is_non_linear_format_io: true"),
            "Non-linear IO format is only supported for the TensorRT platform for m");
  EXPECT_EQ(Tensors("platform: 'tensorrt_plan' input { " + fp32 +
                    "dims: [ 1 ] is_non_linear_format_io: true }"),
            "Non-linear IO format input requires 3 dims for m");
  EXPECT_EQ(Tensors("platform: 'tensorrt_plan' output { " + fp32 +
                    "dims: [ 1 ] is_non_linear_format_io: true }"),
            "Non-linear IO format output requires 3 dims for m");
}

TEST(ValidateTensors, ChecksBatchInputs) {
  const auto check = [](const std::string& text) {
    return Tensors(std::string("backend: 'b' ") + kTensors + "batch_input { " + text + " }");
  };
  EXPECT_EQ(check("data_type: TYPE_FP32 source_input: 'I'"), "valid");
  for (const char* kind :
       {"BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT",
        "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
        "BATCH_ITEM_SHAPE", "BATCH_ITEM_SHAPE_FLATTEN"}) {
    const std::string text = std::string("data_type: TYPE_FP32 kind: ") + kind;
    const std::string expects =
        std::string("batch input kind '") + kind + "' expects 1 source input, ";
    EXPECT_EQ(check(text), expects + "got 0 for m");
    EXPECT_EQ(check(text + " source_input: [ 'I', 'I' ]"), expects + "got 2 for m");
  }
  EXPECT_EQ(check("data_type: TYPE_FP32 kind: 9 source_input: 'I'"),
            "unknown batch input kind '' for m");
  EXPECT_EQ(check("data_type: TYPE_INT64 source_input: 'I'"),
            "batch input data type must be TYPE_INT32 or TYPE_FP32 for m");
  EXPECT_EQ(check("data_type: TYPE_FP32 source_input: 'X'"), "unknown source input name 'X' for m");
}

TEST(ValidateTensors, ChecksBatchOutputs) {
  const auto check = [](const std::string& text) {
    return Tensors(std::string("backend: 'b' ") + kTensors + "batch_output { " + text + " }");
  };
  EXPECT_EQ(check("target_name: 'O' source_input: 'I'"), "valid");
  EXPECT_EQ(
      check("target_name: 'O'"),
      "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m");
  EXPECT_EQ(check("target_name: 'O' source_input: 'X'"), "unknown source input name 'X' for m");
  EXPECT_EQ(check("target_name: 'X' source_input: 'I'"), "unknown target output name 'X' for m");
  EXPECT_EQ(check("target_name: [ 'O', 'O' ] source_input: 'I'"),
            "target output name 'O' can only be specified once for m");
  EXPECT_EQ(check("kind: 9 target_name: 'O' source_input: 'I'"),
            "unknown batch output kind '' for m");
}

TEST(ValidateInstanceGroups, ChecksKindsAndGpus) {
  const GpuSupport two{.gpus = {0, 1}, .built_with_gpus = true, .min_compute_capability = 6};
  const GpuSupport none{.built_with_gpus = true};
  EXPECT_EQ(Groups("backend: 'b'"), "valid");
  EXPECT_EQ(Groups("backend: 'b' instance_group { kind: KIND_GPU gpus: [ 1 ] }", two), "valid");
  EXPECT_EQ(Groups("backend: 'b' instance_group { kind: KIND_CPU gpus: [ 1 ] }"),
            "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs");
  EXPECT_EQ(Groups("backend: 'b' instance_group { kind: KIND_MODEL gpus: [ 1 ] }"),
            "instance group m_0 of model m has kind KIND_MODEL but specifies one or more GPUs");
  EXPECT_EQ(Groups("backend: 'b' instance_group { kind: KIND_GPU }"),
            "instance group m_0 of model m has kind KIND_GPU but server does not support GPUs");
  EXPECT_EQ(Groups("backend: 'b' instance_group { kind: KIND_GPU }", none),
            "instance group m_0 of model m has kind KIND_GPU but no GPUs are available");
  EXPECT_EQ(
      Groups("backend: 'b' instance_group { kind: KIND_GPU gpus: [ 42 ] }", two),
      "instance group m_0 of model m specifies invalid or unsupported gpu id 42. GPUs with at "
      "least the minimum required CUDA compute compatibility of 6.000000 are: 0, 1");
  EXPECT_EQ(FirstLine(ValidateInstanceGroups(Prepared("backend: 'b'"), {})),
            "must specify one or more 'instance group's for m");
  ModelConfig odd = Prepared("backend: 'b' instance_group { name: 'g' kind: 17 }");
  EXPECT_EQ(FirstLine(ValidateInstanceGroups(odd, {})),
            "instance group g of model m has unexpected kind KIND_AUTO");
}

TEST(ValidateInstanceGroups, ChecksProfiles) {
  const auto check = [](const std::string& profile) {
    return Groups("platform: 'tensorrt_plan' instance_group { profile: '" + profile + "' }");
  };
  EXPECT_EQ(check("0"), "valid");
  EXPECT_EQ(check(""), "profile name must not be empty");
  EXPECT_EQ(check("x"), "unable to parse 'x': stoi");
  EXPECT_EQ(
      check("-1"),
      "instance group m_0 of model m and platform tensorrt_plan specifies invalid profile -1. The "
      "field should contain the string representation of a non-negative integer.");
  EXPECT_EQ(
      Groups("platform: 'onnxruntime_onnx' instance_group { profile: '0' }"),
      "instance group m_0 of model m and platform onnxruntime_onnxspecifies profile field which "
      "is only supported for TensorRT models");
}

TEST(ValidateInstanceGroups, BoundsTheNumberOfInstances) {
  EXPECT_EQ(Groups("backend: 'b' instance_group { count: 4096 }"), "valid");
  EXPECT_EQ(Groups("backend: 'b' instance_group { count: 2147483647 }"),
            "instance groups of model m have 2147483647 instances, the limit is 4096");
  EXPECT_EQ(Groups("backend: 'b' instance_group { count: 4096 } instance_group { count: 1 }"),
            "instance groups of model m have 4097 instances, the limit is 4096");
  const GpuSupport two{.gpus = {0, 1}, .built_with_gpus = true};
  EXPECT_EQ(
      Groups("backend: 'b' instance_group { kind: KIND_GPU gpus: [ 0, 1 ] count: 2049 }", two),
      "instance groups of model m have 4098 instances, the limit is 4096");
}

TEST(ValidateModelConfig, BoundsTheWarmUp) {
  const auto check = [](const std::string& text) {
    return Identity("model_warmup { name: 'w' " + text + " }");
  };
  EXPECT_EQ(check("batch_size: 65536 count: 100000"), "valid");
  EXPECT_EQ(check("batch_size: 1 count: 4000000000"),
            "warmup sample 'w' of m has count 4000000000, the limit is 100000");
  EXPECT_EQ(check("batch_size: 4000000000"),
            "warmup sample 'w' of m has batch_size 4000000000, the limit is 65536");
}

TEST(ValidateModelConfig, BoundsTheSequencesThatAModelHolds) {
  const auto check = [](int64_t candidates, const std::string& more) {
    return Identity("sequence_batching { oldest { max_candidate_sequences: " +
                    std::to_string(candidates) + " } } " + more);
  };
  EXPECT_EQ(check(1 << 20, ""), "valid");
  EXPECT_EQ(
      check(INT32_MAX, ""),
      "sequence batching of m has room for more than 1048576 sequences: 2147483647 in each of 1 "
      "instances");
  EXPECT_EQ(check(1 << 19, "instance_group { count: 3 }"),
            "sequence batching of m has room for more than 1048576 sequences: 524288 in each of 3 "
            "instances");
  EXPECT_EQ(
      Config(std::string("backend: 'identity' max_batch_size: 2147483647 "
                         "sequence_batching { direct { } } ") +
             kTensors),
      "sequence batching of m has room for more than 1048576 sequences: 2147483647 in each of 1 "
      "instances");
}

TEST(ValidateFolderName, RequiresTheNameOfTheFolder) {
  EXPECT_TRUE(ValidateFolderName({.name = "a"}, "a").ok());
  EXPECT_EQ(FirstLine(ValidateFolderName({.name = "a"}, "b")),
            "unexpected directory name 'b' for model 'a', directory name must equal model name");
}

TEST(Validation, ReportsAllFaultsOnceEachWithTheirPlace) {
  const ModelConfig config = Prepared(
      "backend: 'onnxruntime' platform: 'x' max_batch_size: -1 dynamic_batching { "
      "preferred_batch_size: [ 0, 0 ] }");
  EXPECT_EQ(
      ValidateModelConfig(config, "m/config.pbtxt").message(),
      "unexpected 'platform' and 'backend' pair, got:x, onnxruntime\n"
      "  m/config.pbtxt: platform: found 'x', expected a platform of backend 'onnxruntime'\n"
      "'max_batch_size' must be non-negative value for m\n"
      "  m/config.pbtxt: max_batch_size: found -1, expected a number >= 0\n"
      "dynamic batching preferred size must be positive for m\n"
      "  m/config.pbtxt: dynamic_batching.preferred_batch_size: found 0, expected a number >= 1\n"
      "dynamic batching preferred size must be <= max batch size for m\n"
      "  m/config.pbtxt: dynamic_batching.preferred_batch_size: found 0, expected at most "
      "max_batch_size -1");
  EXPECT_EQ(
      ValidateTensors(Prepared("backend: 'b' input [ { name: 'A' dims: [ 0 ] }, { } ]"),
                      "m/config.pbtxt")
          .message(),
      "model input 'A' must specify 'data_type' for m\n"
      "  m/config.pbtxt: input[0].data_type: found nothing, expected a type such as TYPE_FP32\n"
      "model input 'A' dimension must be integer >= 1, or -1 to indicate a variable-size "
      "dimension for m\n"
      "  m/config.pbtxt: input[0].dims: found [ 0 ], expected numbers >= 1, or -1 for any size\n"
      "model input must specify 'name' for m\n"
      "  m/config.pbtxt: input[1].name: found nothing, expected the name of the tensor\n"
      "model input must specify 'data_type' for m\n"
      "  m/config.pbtxt: input[1].data_type: found nothing, expected a type such as TYPE_FP32\n"
      "model input must specify 'dims' for m\n"
      "  m/config.pbtxt: input[1].dims: found nothing, expected at least one dimension");
}

}  // namespace
}  // namespace nereid::config
