// SPDX-License-Identifier: Apache-2.0
#include "check/backend_facts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace nereid::check {
namespace {

using enum ParameterType;

constexpr auto kOnnxParameters = std::to_array<ParameterFact>({
    {"execution_mode", kInteger},
    {"intra_op_thread_count", kInteger},
    {"inter_op_thread_count", kInteger},
    {"enable_mem_arena", kBool},
    {"enable_mem_pattern", kBool},
    {"cudnn_conv_algo_search", kInteger},
    {"arena_extend_strategy", kInteger},
    {"gpu_mem_limit"},
    {"do_copy_in_default_stream"},
    {"session.*"},
    {"optimization.*"},
    {"mlas.*"},
    {"ep.*"},
    {"memory.*"},
});
constexpr auto kOnnxAccelerators = std::to_array<std::string_view>(
    {"openvino", "tensorrt", "cuda", "xnnpack", "qnn", "migraphx", "vitisai"});

constexpr auto kTorchParameters = std::to_array<ParameterFact>({
    {"DISABLE_OPTIMIZED_EXECUTION", kBool},
    {"INFERENCE_MODE", kBool},
    {"DISABLE_CUDNN", kBool},
    {"ENABLE_CACHE_CLEANING", kBool},
    {"ENABLE_WEIGHT_SHARING", kBool},
    {"ENABLE_TORCH_FUSER", kBool},
    {"ENABLE_TENSOR_FUSER", kBool},
    {"ENABLE_JIT_PROFILING", kBool},
    {"ENABLE_JIT_EXECUTOR", kBool},
    {"INTRA_OP_THREAD_COUNT", kInteger},
    {"INTER_OP_THREAD_COUNT", kInteger},
});

constexpr auto kOpenVinoParameters = std::to_array<ParameterFact>({
    {"CPU_THREADS_NUM"},
    {"CPU_THROUGHPUT_STREAMS"},
    {"CPU_BIND_THREAD"},
    {"CPU_EXTENSION_PATH"},
    {"CACHE_DIR"},
    {"COMPILATION_NUM_THREADS"},
    {"ENABLE_BATCH_PADDING"},
    {"ENFORCE_BF16"},
    {"HINT_BF16"},
    {"INFERENCE_NUM_THREADS"},
    {"INFERENCE_PRECISION_HINT"},
    {"NUM_STREAMS"},
    {"PERFORMANCE_HINT"},
    {"RESHAPE_IO_LAYERS"},
    {"SKIP_OV_DYNAMIC_BATCHSIZE"},
    {"TARGET_DEVICE"},
});
constexpr auto kOpenVinoAccelerators = std::to_array<std::string_view>({"openvino"});

constexpr auto kTensorFlowParameters = std::to_array<ParameterFact>({
    {"TF_NUM_INTRA_THREADS", kInteger},
    {"TF_NUM_INTER_THREADS", kInteger},
    {"TF_USE_PER_SESSION_THREADS", kBool},
    {"TF_GRAPH_TAG"},
    {"TF_SIGNATURE_DEF"},
    {"TF_INIT_OPS_FILE"},
    {"MAX_SESSION_SHARE_COUNT", kInteger},
});
constexpr auto kTensorFlowAccelerators =
    std::to_array<std::string_view>({"tensorrt", "auto_mixed_precision", "gpu_io"});

constexpr auto kIdentityParameters = std::to_array<ParameterFact>({
    {"execute_delay_ms", kInteger},
    {"instance_wise_delay_multiplier", kInteger},
    {"creation_delay_sec", kInteger},
    {"enable_custom_tracing"},
    {"nested_span_count", kInteger},
    {"single_activity_frequency", kInteger},
    {"response_parameters", kBool},
    {"echo_parameters", kBool},
});

constexpr auto kBackends = std::to_array<BackendFacts>({
    {.name = "onnxruntime",
     .parameters = kOnnxParameters,
     .accelerators = kOnnxAccelerators,
     .reads_graph_level = true},
    {.name = "pytorch", .parameters = kTorchParameters},
    {.name = "openvino", .parameters = kOpenVinoParameters, .accelerators = kOpenVinoAccelerators},
    {.name = "tensorflow",
     .parameters = kTensorFlowParameters,
     .accelerators = kTensorFlowAccelerators,
     .fills_members = true,
     .reads_graph_level = true},
    {.name = "tensorrt",
     .parameters = {},
     .accelerators = {},
     .fills_members = true,
     .reads_cuda = true,
     .reads_priority = true},
    {.name = "caffe2", .parameters = kOnnxParameters, .reads_graph_level = true},
    {.name = "python", .takes_any_parameter = true},
    {.name = "identity", .needs_model_file = false, .parameters = kIdentityParameters},
    {.name = "repeat", .needs_model_file = false, .takes_any_parameter = true},
    {.name = "square", .needs_model_file = false, .takes_any_parameter = true},
    {.name = "sequence", .needs_model_file = false, .takes_any_parameter = true},
    {.name = "dyna_sequence", .needs_model_file = false, .takes_any_parameter = true},
    {.name = "iterative_sequence", .needs_model_file = false, .takes_any_parameter = true},
    {.name = "implicit_state", .needs_model_file = false, .takes_any_parameter = true},
});

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

const BackendFacts* FactsOf(std::string_view backend) {
  const auto found = std::ranges::find(kBackends, backend, &BackendFacts::name);
  return found == kBackends.end() ? nullptr : &*found;
}

Completion CompletionBy(const config::ModelConfig& config, std::string_view script) {
  if (config.ensemble_scheduling() != nullptr) return {false, false, false};
  const BackendFacts* const facts = FactsOf(config.backend);
  if (facts == nullptr || !config.runtime.empty()) return {};
  if (config.backend == "python") {
    const bool completes = script.find("auto_complete_config") != std::string_view::npos;
    return {completes, completes, completes};
  }
  if (!facts->needs_model_file) return {false, false, false};
  const bool has_no_inputs = config.platform == "pytorch_libtorch" || config.backend == "caffe2";
  const bool has_nothing = config.platform == "tensorflow_graphdef";
  return {!has_no_inputs && !has_nothing, !has_nothing, facts->fills_members && !has_nothing};
}

bool Understands(ParameterType type, std::string_view value) {
  switch (type) {
    case kText:
      return true;
    case kInteger: {
      // Backends read the number at the beginning, as in C.
      while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())) != 0) {
        value.remove_prefix(1);
      }
      if (value.starts_with('+')) value.remove_prefix(1);
      int number = 0;
      return std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc();
    }
    case kBool: {
      constexpr auto kWords =
          std::to_array<std::string_view>({"true", "on", "1", "false", "off", "0"});
      return std::ranges::find(kWords, Lower(value)) != kWords.end();
    }
  }
  return true;
}

}  // namespace nereid::check
