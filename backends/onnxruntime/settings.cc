// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/settings.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <thread>

namespace nereid::onnxruntime {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// optimization.graph.level: -1 is basic, 1 extended, 2 none; all optimisations otherwise.
GraphOptimizationLevel GraphLevel(const rapidjson::Value& optimization) {
  const rapidjson::Value* graph = backend::Find(optimization, "graph");
  switch (graph == nullptr ? 0 : backend::IntMember(*graph, "level", 0)) {
    case -1:
      return ORT_ENABLE_BASIC;
    case 1:
      return ORT_ENABLE_EXTENDED;
    case 2:
      return ORT_DISABLE_ALL;
    default:
      return ORT_ENABLE_ALL;
  }
}

Result<ExecutionMode> ModeOf(const ModelConfig& config) {
  NEREID_KIT_ASSIGN(const int mode, config.IntParameter("execution_mode", 0));
  if (mode != 0 && mode != 1) {
    return Error::InvalidArgument(
        StrCat("Invalid configuration value provided. Expected values "
               "for  execution_mode are 0 or 1 but got ",
               mode, " ."));
  }
  return mode == 0 ? ORT_SEQUENTIAL : ORT_PARALLEL;
}

Result<std::optional<bool>> OptionalBool(const ModelConfig& config, const char* key) {
  const auto text = config.Parameter(key);
  if (!text.has_value()) {
    return std::optional<bool>();
  }
  NEREID_KIT_ASSIGN(const bool value, backend::ParseBool(*text));
  return std::optional<bool>(value);
}

// Translates numbers of CUDA parameters that are older than gpu_execution_accelerator "cuda".
Error AddNumberedCuda(const ModelConfig& config, const char* key,
                      std::initializer_list<const char*> names, Settings* settings) {
  if (!config.Parameter(key).has_value()) {
    return {};
  }
  NEREID_KIT_ASSIGN(const int choice, config.IntParameter(key, 0));
  if (choice < 0 || static_cast<size_t>(choice) >= names.size()) {
    return Error::InvalidArgument(
        StrCat("unsupported ", key, " value '", choice, "' is requested"));
  }
  settings->cuda_options.emplace_back(key, names.begin()[choice]);
  return {};
}

Error AddCudaParameters(const ModelConfig& config, Settings* settings) {
  NEREID_KIT_TRY(AddNumberedCuda(config, "cudnn_conv_algo_search",
                                 {"EXHAUSTIVE", "HEURISTIC", "DEFAULT"}, settings));
  NEREID_KIT_TRY(AddNumberedCuda(config, "arena_extend_strategy",
                                 {"kNextPowerOfTwo", "kSameAsRequested"}, settings));
  for (const char* key : {"gpu_mem_limit", "do_copy_in_default_stream"}) {
    if (const auto value = config.Parameter(key)) {
      settings->cuda_options.emplace_back(key, *value);
    }
  }
  return {};
}

void AddEntries(const rapidjson::Value& config, Settings* settings) {
  const rapidjson::Value* parameters = backend::Find(config, "parameters");
  if (parameters == nullptr || !parameters->IsObject()) {
    return;
  }
  for (const auto& parameter : parameters->GetObject()) {
    const std::string key = parameter.name.GetString();
    const std::string value(backend::StringMember(parameter.value, "string_value"));
    if (key == "session.use_memory_mapped_ort_model") {
      // Truncating a mapped file would end the process that reads it.
      backend::LogInfo(StrCat("the parameter '", key, "' is ignored: models are read into memory"));
    } else if (StartsWith(key, "session.") || StartsWith(key, "optimization.") ||
               StartsWith(key, "mlas.") || StartsWith(key, "ep.")) {
      settings->session_entries.emplace_back(key, value);
    } else if (StartsWith(key, "memory.")) {
      settings->run_entries.emplace_back(key, value);
    }
  }
}

// Disables spinning unless the model's parameters set it. By default, idle threads of ONNX Runtime
// spin for a while before they sleep. In a server, other requests need that processor time: with
// two threads and spinning, a text detector costs 52 ms of it instead of 29, a recogniser 21
// instead of 12.
void AddSpinning(Settings* settings) {
  for (const char* key : {"session.intra_op.allow_spinning", "session.inter_op.allow_spinning"}) {
    const auto& entries = settings->session_entries;
    const bool is_set = std::any_of(entries.begin(), entries.end(),
                                    [key](const auto& entry) { return entry.first == key; });
    if (!is_set) {
      settings->session_entries.emplace_back(key, "0");
    }
  }
}

// Returns the CPUs of the process's cgroup quota (version 2, then 1); 0 for no quota.
int QuotaCpus() {
  std::string quota;
  int64_t period = 0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (!(v2 >> quota >> period)) {
    std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (!(v1_quota >> quota) || !(v1_period >> period)) {
      return 0;
    }
  }
  const int64_t quota_us = std::strtoll(quota.c_str(), nullptr, 10);  // "max" is 0
  return quota_us > 0 && period > 0 ? static_cast<int>((quota_us + period - 1) / period) : 0;
}

}  // namespace

Result<Settings> Settings::FromConfig(const ModelConfig& config) {
  Settings settings;
  if (const rapidjson::Value* optimization = backend::Find(config.json(), "optimization")) {
    settings.graph_level = GraphLevel(*optimization);
    settings.cpu_accelerators = backend::Accelerators(config, "cpu_execution_accelerator");
    settings.gpu_accelerators = backend::Accelerators(config, "gpu_execution_accelerator");
  }
  NEREID_KIT_ASSIGN(settings.execution_mode, ModeOf(config));
  NEREID_KIT_ASSIGN(settings.intra_op_threads, config.IntParameter("intra_op_thread_count", 0));
  NEREID_KIT_ASSIGN(settings.inter_op_threads, config.IntParameter("inter_op_thread_count", 0));
  NEREID_KIT_ASSIGN(settings.memory_arena, OptionalBool(config, "enable_mem_arena"));
  NEREID_KIT_ASSIGN(settings.memory_pattern, OptionalBool(config, "enable_mem_pattern"));
  NEREID_KIT_TRY(AddCudaParameters(config, &settings));
  AddEntries(config.json(), &settings);
  AddSpinning(&settings);
  if (const rapidjson::Value* operations = backend::Find(config.json(), "model_operations")) {
    for (const rapidjson::Value& library : backend::ArrayOf(*operations, "op_library_filename")) {
      settings.op_libraries.emplace_back(library.IsString() ? library.GetString() : "");
    }
  }
  settings.model_filename = backend::StringMember(config.json(), "default_model_filename");
  if (settings.model_filename.empty()) {
    settings.model_filename = "model.onnx";
  }
  return settings;
}

int DefaultThreads() {
  const auto machine = static_cast<int>(std::thread::hardware_concurrency());
  int allowed = machine;
  cpu_set_t affinity;
  if (sched_getaffinity(0, sizeof(affinity), &affinity) == 0) {
    allowed = std::min(allowed, CPU_COUNT(&affinity));
  }
  if (const int quota = QuotaCpus(); quota > 0) {
    allowed = std::min(allowed, quota);
  }
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return allowed < online ? std::max(allowed, 1) : 0;
}

}  // namespace nereid::onnxruntime
