// SPDX-License-Identifier: Apache-2.0
// Tests the parts of the backend that only read configurations and shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnxruntime_backend/auto_complete.h"
#include "onnxruntime_backend/data_types.h"
#include "onnxruntime_backend/environment.h"
#include "onnxruntime_backend/plan.h"
#include "onnxruntime_backend/providers.h"
#include "onnxruntime_backend/validate.h"

namespace nereid::onnxruntime {
namespace {

using backend::ModelConfig;

constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;

ModelConfig Config(const char* json) {
  auto config = ModelConfig::Parse(json);
  EXPECT_TRUE(config.ok());
  return std::move(config).value();
}

Signature AddSub() {
  return {.inputs = {{"A", kFloat, {-1, 4}}, {"B", kFloat, {-1, 4}}},
          .outputs = {{"Z", kFloat, {-1, 4}}},
          .initializers = {}};
}

std::string ValidationError(const char* json, const Signature& signature = AddSub()) {
  return Validate("m", Config(json), signature).message();
}

TEST(DataTypes, RoundTripEveryTypeOfTheServer) {
  for (int t = TRITONSERVER_TYPE_BOOL; t <= TRITONSERVER_TYPE_BF16; ++t) {
    const auto type = static_cast<TRITONSERVER_DataType>(t);
    EXPECT_EQ(ToServerType(FromServerType(type)), type) << t;
    EXPECT_EQ(FromConfigName(ConfigName(FromServerType(type))), FromServerType(type)) << t;
  }
  EXPECT_EQ(ConfigName(ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64), "TYPE_INVALID");
  EXPECT_EQ(FromConfigName("FP32"), ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
}

TEST(Settings, MapTritonsFieldsAndParameters) {
  auto result = Settings::FromConfig(Config(R"({
    "optimization":{"graph":{"level":1},"execution_accelerators":{
      "cpu_execution_accelerator":[{"name":"openvino","parameters":{"a":"b"}}]}},
    "parameters":{"intra_op_thread_count":{"string_value":"3"},
                  "execution_mode":{"string_value":"1"},
                  "enable_mem_arena":{"string_value":"false"},
                  "session.disable_prepacking":{"string_value":"1"},
                  "memory.enable_memory_arena_shrinkage":{"string_value":"cpu:0"},
                  "other":{"string_value":"x"}},
    "default_model_filename":"net.onnx"})"));
  ASSERT_TRUE(result.ok());
  const Settings& s = result.value();
  EXPECT_EQ(s.graph_level, ORT_ENABLE_EXTENDED);
  EXPECT_EQ(s.execution_mode, ORT_PARALLEL);
  EXPECT_EQ(s.intra_op_threads, 3);
  EXPECT_EQ(s.memory_arena, false);
  EXPECT_EQ(s.memory_pattern, std::nullopt);
  ASSERT_GE(s.session_entries.size(), 1u);
  EXPECT_EQ(s.session_entries[0].first, "session.disable_prepacking");
  ASSERT_EQ(s.run_entries.size(), 1u);
  ASSERT_EQ(s.cpu_accelerators.size(), 1u);
  EXPECT_EQ(s.cpu_accelerators[0].parameters[0].second, "b");
  EXPECT_EQ(s.model_filename, "net.onnx");
}

TEST(Settings, ThreadsSpinOnlyIfTheModelEnablesIt) {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(Settings::FromConfig(Config("{}")).value().session_entries,
            (Entries{{"session.intra_op.allow_spinning", "0"},
                     {"session.inter_op.allow_spinning", "0"}}));
  EXPECT_EQ(Settings::FromConfig(Config(R"({"parameters":{
                "session.intra_op.allow_spinning":{"string_value":"1"}}})"))
                .value()
                .session_entries,
            (Entries{{"session.intra_op.allow_spinning", "1"},
                     {"session.inter_op.allow_spinning", "0"}}));
}

TEST(Settings, ModelsAreNotMapped) {
  const auto entries = Settings::FromConfig(Config(R"({"parameters":{
      "session.use_memory_mapped_ort_model":{"string_value":"1"}}})"))
                           .value()
                           .session_entries;
  for (const auto& [key, value] : entries) {
    EXPECT_NE(key, "session.use_memory_mapped_ort_model");
  }
}

TEST(Settings, MapEveryGraphLevel) {
  const auto level = [](const char* json) {
    return Settings::FromConfig(Config(json)).value().graph_level;
  };
  EXPECT_EQ(level("{}"), ORT_ENABLE_ALL);
  EXPECT_EQ(level(R"({"optimization":{"graph":{"level":-1}}})"), ORT_ENABLE_BASIC);
  EXPECT_EQ(level(R"({"optimization":{"graph":{"level":2}}})"), ORT_DISABLE_ALL);
  EXPECT_EQ(level(R"({"optimization":{"graph":{"level":7}}})"), ORT_ENABLE_ALL);
}

TEST(Settings, RefuseAnUnknownExecutionMode) {
  EXPECT_FALSE(
      Settings::FromConfig(Config(R"({"parameters":{"execution_mode":{"string_value":"2"}}})"))
          .ok());
}

TEST(CommandLine, ReadsThreadCountsOnlyWithTheGlobalPool) {
  auto on = CommandLine::Parse(
      R"({"cmdline":{"enable-global-threadpool":"1","intra_op_thread_count":"2",
                     "default-max-batch-size":"7"}})");
  ASSERT_TRUE(on.ok());
  EXPECT_TRUE(on.value().global_thread_pool);
  EXPECT_EQ(on.value().intra_op_threads, 2);
  EXPECT_EQ(on.value().default_max_batch_size, 7);
  auto off = CommandLine::Parse(R"({"cmdline":{"intra_op_thread_count":"2"}})");
  ASSERT_TRUE(off.ok());
  EXPECT_EQ(off.value().intra_op_threads, 0);
  EXPECT_EQ(off.value().default_max_batch_size, 4);
  EXPECT_FALSE(CommandLine::Parse(R"({"cmdline":{"enable-global-threadpool":"maybe"}})").ok());
}

TEST(AutoComplete, FindsBatchesAndTurnsDynamicBatchingOn) {
  ModelConfig config = Config(R"({"name":"m"})");
  ASSERT_TRUE(Complete("m", AddSub(), 4, &config).ok());
  EXPECT_EQ(config.max_batch_size(), 4);
  EXPECT_NE(backend::Find(config.json(), "dynamic_batching"), nullptr);
  const auto inputs = backend::ArrayOf(config.json(), "input");
  ASSERT_EQ(inputs.Size(), 2u);
  EXPECT_EQ(backend::DimsMember(inputs[1], "dims"), std::vector<int64_t>{4});
  EXPECT_EQ(backend::StringMember(inputs[1], "data_type"), "TYPE_FP32");
}

TEST(AutoComplete, GivesAModelThatIsNotBatchedItsWholeShapes) {
  ModelConfig config = Config(R"({"name":"m"})");
  ASSERT_TRUE(Complete("m", AddSub(), 0, &config).ok());
  EXPECT_EQ(config.max_batch_size(), 0);
  EXPECT_EQ(backend::Find(config.json(), "dynamic_batching"), nullptr);
  EXPECT_EQ(backend::DimsMember(backend::ArrayOf(config.json(), "output")[0], "dims"),
            (std::vector<int64_t>{-1, 4}));
}

TEST(AutoComplete, LeavesChosenSchedulersAndTensorsAlone) {
  ModelConfig config = Config(R"({"max_batch_size":2,"sequence_batching":{},
    "input":[{"name":"A","data_type":"TYPE_FP32","dims":[4]}]})");
  ASSERT_TRUE(Complete("m", AddSub(), 4, &config).ok());
  EXPECT_EQ(config.max_batch_size(), 2);
  EXPECT_EQ(backend::Find(config.json(), "dynamic_batching"), nullptr);
  EXPECT_EQ(backend::ArrayOf(config.json(), "input").Size(), 1u);
}

TEST(AutoComplete, WritesAScalarBesideABatchAsAReshape) {
  const Signature per_item{
      .inputs = {{"A", kFloat, {-1}}}, .outputs = {{"Z", kFloat, {-1}}}, .initializers = {}};
  ModelConfig config = Config("{}");
  ASSERT_TRUE(Complete("m", per_item, 4, &config).ok());
  const auto& input = backend::ArrayOf(config.json(), "input")[0];
  EXPECT_EQ(backend::DimsMember(input, "dims"), std::vector<int64_t>{1});
  EXPECT_TRUE(backend::ModelDims(input).empty());
}

TEST(AutoComplete, RefusesBatchesTheModelCannotTake) {
  const Signature fixed{
      .inputs = {{"A", kFloat, {2, 4}}}, .outputs = {{"Z", kFloat, {-1, 4}}}, .initializers = {}};
  ModelConfig config = Config(R"({"max_batch_size":8})");
  EXPECT_STREQ(Complete("m", fixed, 4, &config).message(),
               "autofill failed for model 'm': model does not support batching while non-zero "
               "max_batch_size is specified");
}

TEST(Validate, AcceptsWhatFits) {
  EXPECT_EQ(ValidationError(R"({"max_batch_size":8,
    "input":[{"name":"A","data_type":"TYPE_FP32","dims":[4]},
             {"name":"B","data_type":"TYPE_FP32","dims":[2,2],"reshape":{"shape":[4]}}],
    "output":[{"name":"Z","data_type":"TYPE_FP32","dims":[4]}]})"),
            "");
}

TEST(Validate, NamesWhatDoesNotFit) {
  EXPECT_EQ(ValidationError(R"({"input":[{"name":"A","data_type":"TYPE_FP32","dims":[-1,4]}]})"),
            "unable to load model 'm', configuration expects 1 inputs, model provides 2");
  EXPECT_EQ(ValidationError(R"({"input":[{"name":"A","data_type":"TYPE_FP32","dims":[-1,4]},
                                         {"name":"C","data_type":"TYPE_FP32","dims":[-1,4]}]})"),
            "unexpected inference input 'C', allowed inputs are: A, B");
  EXPECT_EQ(ValidationError(R"({"input":[{"name":"A","data_type":"TYPE_FP32","dims":[-1,4]},
                                         {"name":"B","data_type":"TYPE_INT8","dims":[-1,4]}]})"),
            "unable to load model 'm', configuration expects datatype TYPE_INT8 for input 'B', "
            "model provides TYPE_FP32");
  EXPECT_EQ(ValidationError(R"({"input":[{"name":"A","data_type":"TYPE_FP32","dims":[-1,4]},
                                         {"name":"B","data_type":"TYPE_FP32","dims":[-1,5]}]})"),
            "model 'm', tensor 'B': the model expects 2 dimensions (shape [-1,4]) but the model "
            "configuration specifies 2 dimensions (shape [-1,5])");
}

TEST(Validate, AnOutputMustNotBeNarrowerThanTheModel) {
  const Signature open{
      .inputs = {{"A", kFloat, {-1}}}, .outputs = {{"Z", kFloat, {-1}}}, .initializers = {}};
  EXPECT_EQ(ValidationError(R"({"input":[{"name":"A","data_type":"TYPE_FP32","dims":[3]}],
                                "output":[{"name":"Z","data_type":"TYPE_FP32","dims":[3]}]})",
                            open),
            "model 'm', tensor 'Z': the model expects 1 dimensions (shape [-1]) but the model "
            "configuration specifies 1 dimensions (shape [3])");
}

TEST(Validate, CountsSequenceControlsAmongTheInputs) {
  const Signature sequence{
      .inputs = {{"A", kFloat, {-1, 4}}, {"START", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, {-1, 1}}},
      .outputs = {},
      .initializers = {}};
  EXPECT_EQ(ValidationError(R"({"max_batch_size":2,
    "input":[{"name":"A","data_type":"TYPE_FP32","dims":[4]}],
    "sequence_batching":{"control_input":[{"name":"START","control":[
      {"kind":"CONTROL_SEQUENCE_START","int32_false_true":[0,1]}]}]}})",
                            sequence),
            "");
}

TEST(Validate, ChecksStatesAsInputsAndOutputsOfTheModel) {
  const Signature stateful{.inputs = {{"A", kFloat, {-1, 4}}, {"SI", kFloat, {-1, -1}}},
                           .outputs = {{"Z", kFloat, {-1, 4}}, {"SO", kFloat, {-1, -1}}},
                           .initializers = {}};
  const auto error = [&](const std::string& state) {
    const std::string json =
        R"({"max_batch_size":2,"input":[{"name":"A","data_type":"TYPE_FP32","dims":[4]}],
            "output":[{"name":"Z","data_type":"TYPE_FP32","dims":[4]}],
            "sequence_batching":{"state":[{)" +
        state + "}]}}";
    return ValidationError(json.c_str(), stateful);
  };
  EXPECT_EQ(error(R"("input_name":"SI","output_name":"SO","data_type":"TYPE_FP32","dims":[-1])"),
            "");
  EXPECT_EQ(error(R"("input_name":"SX","output_name":"SO","data_type":"TYPE_FP32","dims":[-1])"),
            "unexpected inference input 'SX', allowed inputs are: A, SI");
  EXPECT_EQ(error(R"("input_name":"SI","output_name":"SX","data_type":"TYPE_FP32","dims":[-1])"),
            "unexpected inference output 'SX', allowed outputs are: SO, Z");
  EXPECT_EQ(error(R"("input_name":"SI","output_name":"SO","data_type":"TYPE_INT8","dims":[-1])"),
            "unable to load model 'm', configuration expects datatype TYPE_INT8 for input 'SI', "
            "model provides TYPE_FP32");
  EXPECT_NE(error(R"("input_name":"SI","output_name":"SO","data_type":"TYPE_FP32","dims":[2,2])"),
            "");
}

TEST(Validate, RequiresRaggedInputsInOneDimensionAndAcceptsBatchInputs) {
  const auto error = [&](const std::vector<int64_t>& dims, const char* target) {
    const Signature ragged{
        .inputs = {{"A", kFloat, dims}, {"N", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, {-1}}},
        .outputs = {},
        .initializers = {}};
    const std::string json =
        R"({"max_batch_size":2,"input":[{"name":"A","data_type":"TYPE_FP32","dims":[-1],
            "allow_ragged_batch":true}],"batch_input":[{"kind":"BATCH_ELEMENT_COUNT",
            "data_type":"TYPE_INT32","target_name":[")" +
        std::string(target) + R"("],"source_input":["A"]}]})";
    return ValidationError(json.c_str(), ragged);
  };
  EXPECT_EQ(error({-1}, "N"), "");
  EXPECT_EQ(error({-1, -1}, "N"),
            "unable to load model 'm', configuration expects model provides input with shape [-1] "
            "for ragged input 'A', model provides [-1,-1]");
  EXPECT_EQ(error({-1}, "M"), "unexpected inference input 'M', allowed inputs are: A, N");
}

TEST(Providers, AreNamedWhenOneIsMissing) {
  EXPECT_STREQ(CheckAccelerator("m", "tensorrt", {"CPUExecutionProvider"}).message(),
               "unable to load model 'm', Execution Accelerator 'tensorrt' is requested but this "
               "ONNX Runtime library has no TensorrtExecutionProvider; execution providers "
               "available: CPUExecutionProvider. To run the model with TensorRT without it, make a "
               "plan of the ONNX file (trtexec --onnx=model.onnx --saveEngine=model.plan) and set "
               "platform: \"tensorrt_plan\"");
  EXPECT_STREQ(CheckAccelerator("m", "warp", {"CPUExecutionProvider"}).message(),
               "unable to load model 'm', unknown Execution Accelerator 'warp' is requested; "
               "execution providers available: CPUExecutionProvider");
  EXPECT_THAT(CheckAccelerator("m", "openvino", {"CPUExecutionProvider"}).message(),
              testing::HasSubstr("tools/setup --with openvino"));
  EXPECT_TRUE(CheckAccelerator("m", "cuda", {"CUDAExecutionProvider"}).ok());
}

TEST(Providers, TakeNoAddressesFromAConfiguration) {
  EXPECT_TRUE(CheckCudaOptions("m", {{"gpu_mem_limit", "1"}, {"device_id", "0"}}).ok());
  for (const char* const key : {"user_compute_stream", "has_user_compute_stream",
                                "gpu_external_alloc", "gpu_external_free"}) {
    EXPECT_THAT(CheckCudaOptions("m", {{"gpu_mem_limit", "1"}, {key, "1"}}).message(),
                testing::HasSubstr(key));
  }
}

TEST(Providers, TranslateTensorRtParameters) {
  auto options = TensorRtOptions({"tensorrt",
                                  {{"precision_mode", "FP16"},
                                   {"max_workspace_size_bytes", "9"},
                                   {"trt_engine_cache_enable", "1"}}});
  ASSERT_TRUE(options.ok());
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"trt_fp16_enable", "1"}, {"trt_max_workspace_size", "9"}, {"trt_engine_cache_enable", "1"}};
  EXPECT_EQ(options.value(), expected);
  EXPECT_FALSE(TensorRtOptions({"tensorrt", {{"speed", "1"}}}).ok());
}

TEST(Ports, KnowWhichOutputsHaveAFixedShape) {
  const Signature signature{.inputs = {{"A", kFloat, {-1, 4}}},
                            .outputs = {{"Z", kFloat, {-1, 4}}, {"Y", kFloat, {-1, -1}}},
                            .initializers = {{"W", kFloat, {2}}}};
  const Ports ports(signature, Config(R"({"max_batch_size":2,
    "output":[{"name":"Z","dims":[4]},{"name":"Y","dims":[-1]}]})"));
  ASSERT_EQ(ports.outputs.size(), 2u);
  EXPECT_EQ(ports.outputs[0].info.name, "Y");
  EXPECT_FALSE(ports.outputs[0].fixed_shape);
  EXPECT_TRUE(ports.outputs[1].fixed_shape);
  EXPECT_EQ(Ports::Find(ports.inputs, 0, "W"), 1);
  EXPECT_EQ(Ports::Find(ports.inputs, 5, "A"), 0);
  EXPECT_EQ(Ports::Find(ports.inputs, 0, "absent"), -1);
}

TEST(PlanCache, ForgetsTheLeastRecentlyUsed) {
  PlanCache cache;
  const auto add = [&cache](int64_t key) {
    auto plan = std::make_unique<Plan>();
    plan->key = {key};
    cache.Add(std::move(plan));
  };
  const auto has = [&cache](int64_t key) {
    return cache.Find(std::vector<int64_t>{key}) != nullptr;
  };
  for (int64_t key = 0; key < 32; ++key) {
    add(key);
  }
  EXPECT_TRUE(has(0));
  add(32);
  EXPECT_TRUE(has(0));
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(32));
}

}  // namespace
}  // namespace nereid::onnxruntime
