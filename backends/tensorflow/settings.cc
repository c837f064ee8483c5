// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/settings.h"

#include <bit>
#include <cerrno>
#include <cstdlib>

#include "backend_kit/accelerators.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

// Writes fields of a protobuf message.
class WireWriter {
 public:
  void Number(uint32_t field, int64_t value) {
    Varint(field << 3);
    Varint(static_cast<uint64_t>(value));
  }
  void Double(uint32_t field, double value) {
    Varint(field << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<char>(bits >> shift & 0xFF));
    }
  }
  void Message(uint32_t field, const WireWriter& message) {
    Varint(field << 3 | 2);
    Varint(message.bytes_.size());
    bytes_ += message.bytes_;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  void Varint(uint64_t value) {
    for (; value > 127; value >>= 7) {
      bytes_.push_back(static_cast<char>((value & 127) | 128));
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

// Numbers of fields in TensorFlow's ConfigProto.
constexpr uint32_t kIntraOpThreads = 2, kInterOpThreads = 5, kGpuOptions = 6,
                   kAllowSoftPlacement = 7, kUsePerSessionThreads = 9, kGraphOptions = 10;
constexpr uint32_t kGpuMemoryFraction = 1, kGpuAllowGrowth = 4;  // of GPUOptions
constexpr uint32_t kOptimizerOptions = 3;                        // of GraphOptions
constexpr uint32_t kGlobalJitLevel = 5;                          // of OptimizerOptions

// XLA's level for optimization { graph { level } }; 0 leaves it to TensorFlow.
int64_t JitLevel(const ModelConfig& config) {
  const rapidjson::Value* optimization = backend::Find(config.json(), "optimization");
  const rapidjson::Value* graph =
      optimization == nullptr ? nullptr : backend::Find(*optimization, "graph");
  const int64_t level = graph == nullptr ? 0 : backend::IntMember(*graph, "level", 0);
  return level > 1 ? 2 : level;
}

Result<std::string> SessionConfig(const ModelConfig& config, const CommandLine& flags,
                                  const std::string& model) {
  NEREID_KIT_ASSIGN(const int intra, config.IntParameter("TF_NUM_INTRA_THREADS", 0));
  if (intra < 0) {
    return Error::InvalidArgument(StrCat(
        "parameter 'TF_NUM_INTRA_THREADS' must be non-negative number for TensorFlow model '",
        model, "'"));
  }
  NEREID_KIT_ASSIGN(const int inter, config.IntParameter("TF_NUM_INTER_THREADS", 0));
  NEREID_KIT_ASSIGN(const bool own_threads,
                    config.BoolParameter("TF_USE_PER_SESSION_THREADS", false));
  WireWriter gpu;
  gpu.Double(kGpuMemoryFraction, flags.gpu_memory_fraction);
  gpu.Number(kGpuAllowGrowth, flags.gpu_memory_fraction == 0 ? 1 : 0);
  WireWriter optimizer;
  optimizer.Number(kGlobalJitLevel, JitLevel(config));
  WireWriter graph;
  graph.Message(kOptimizerOptions, optimizer);
  WireWriter session;
  session.Number(kIntraOpThreads, intra);
  session.Number(kInterOpThreads, inter);
  session.Message(kGpuOptions, gpu);
  session.Number(kAllowSoftPlacement, flags.allow_soft_placement ? 1 : 0);
  session.Number(kUsePerSessionThreads, own_threads ? 1 : 0);
  session.Message(kGraphOptions, graph);
  return session.Take();
}

Error CheckAccelerators(const ModelConfig& config, const std::string& model) {
  if (!backend::Accelerators(config, "cpu_execution_accelerator").empty()) {
    return Error::InvalidArgument(
        "CPU Execution Accelerator is not supported in TensorFlow backend");
  }
  if (!backend::Accelerators(config, "gpu_execution_accelerator").empty()) {
    backend::LogWarning(StrCat("model '", model,
                               "': GPU Execution Accelerator will be ignored for model instance on "
                               "CPU"));
  }
  return {};
}

std::vector<std::string> SplitTags(const std::string& text) {
  std::vector<std::string> tags;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) {
      tags.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return tags.empty() ? std::vector<std::string>{"serve"} : tags;
}

Result<double> ParseFraction(const std::string& text) {
  errno = 0;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || errno == ERANGE || !(value >= 0 && value <= 1)) {
    return Error::InvalidArgument(
        StrCat("gpu-memory-fraction must be a number from 0 to 1, got '", text, "'"));
  }
  return value;
}

}  // namespace

Result<CommandLine> CommandLine::Parse(std::string_view json) {
  CommandLine options;
  if (json.empty()) {
    return options;
  }
  NEREID_KIT_ASSIGN(const rapidjson::Document config,
                    backend::ParseJson(json, "backend configuration"));
  const rapidjson::Value* flags = backend::Find(config, "cmdline");
  const auto text = [flags](const char* key) -> std::optional<std::string> {
    if (flags == nullptr || backend::Find(*flags, key) == nullptr) {
      return std::nullopt;
    }
    return std::string(backend::StringMember(*flags, key));
  };
  if (const auto value = text("allow-soft-placement")) {
    NEREID_KIT_ASSIGN(options.allow_soft_placement, backend::ParseBool(*value));
  }
  if (const auto value = text("gpu-memory-fraction")) {
    NEREID_KIT_ASSIGN(options.gpu_memory_fraction, ParseFraction(*value));
  }
  if (const auto value = text("default-max-batch-size")) {
    NEREID_KIT_ASSIGN(options.default_max_batch_size, backend::ParseInt(*value));
  }
  if (const auto value = text("version"); value && *value != "2") {
    return Error::InvalidArgument(
        StrCat("version ", *value, " of TensorFlow is not supported: only version 2 is"));
  }
  return options;
}

Result<Settings> Settings::FromConfig(const ModelConfig& config, const CommandLine& flags,
                                      const std::string& model) {
  Settings settings;
  const std::string_view platform = backend::StringMember(config.json(), "platform");
  settings.is_graph_def = platform == "tensorflow_graphdef";
  if (!settings.is_graph_def && platform != "tensorflow_savedmodel") {
    return Error::InvalidArgument(
        StrCat("platform ", platform, " not supported for TensorFlow model '", model, "'"));
  }
  settings.model_filename = backend::StringMember(config.json(), "default_model_filename");
  if (settings.model_filename.empty()) {
    settings.model_filename = settings.is_graph_def ? "model.graphdef" : "model.savedmodel";
  }
  settings.tags = SplitTags(config.Parameter("TF_GRAPH_TAG").value_or(""));
  settings.signature = config.Parameter("TF_SIGNATURE_DEF").value_or("");
  settings.init_ops_file = config.Parameter("TF_INIT_OPS_FILE").value_or("");
  if (const auto text = config.Parameter("MAX_SESSION_SHARE_COUNT")) {
    NEREID_KIT_ASSIGN(settings.share_count, backend::ParseInt(*text));
    if (*settings.share_count <= 0) {
      return Error::InvalidArgument(StrCat(
          "parameter 'MAX_SESSION_SHARE_COUNT' must be positive number for TensorFlow model '",
          model, "'"));
    }
  }
  if (const rapidjson::Value* operations = backend::Find(config.json(), "model_operations")) {
    for (const rapidjson::Value& name : backend::ArrayOf(*operations, "op_library_filename")) {
      settings.libraries.emplace_back(name.GetString(), name.GetStringLength());
    }
  }
  NEREID_KIT_TRY(CheckAccelerators(config, model));
  NEREID_KIT_ASSIGN(settings.session_config, SessionConfig(config, flags, model));
  return settings;
}

}  // namespace nereid::tensorflow
