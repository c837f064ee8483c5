// SPDX-License-Identifier: Apache-2.0
// The settings of ONNX Runtime in a model configuration, from Triton's fields and parameters.
#pragma once

#include <onnxruntime_c_api.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/accelerators.h"
#include "backend_kit/config.h"

namespace nereid::onnxruntime {

// The settings of a model. Immutable.
struct Settings {
  GraphOptimizationLevel graph_level = ORT_ENABLE_ALL;
  ExecutionMode execution_mode = ORT_SEQUENTIAL;
  int intra_op_threads = 0;  // 0: DefaultThreads
  int inter_op_threads = 0;
  std::optional<bool> memory_arena;
  std::optional<bool> memory_pattern;
  std::vector<std::pair<std::string, std::string>> session_entries;  // session.*, mlas.*, …
  std::vector<std::pair<std::string, std::string>> run_entries;      // memory.*
  std::vector<std::pair<std::string, std::string>> cuda_options;     // deprecated parameters
  std::vector<backend::Accelerator> cpu_accelerators;
  std::vector<backend::Accelerator> gpu_accelerators;
  std::vector<std::string> op_libraries;
  std::string model_filename;  // "model.onnx" unless default_model_filename is set

  static backend::Result<Settings> FromConfig(const backend::ModelConfig& config);
};

// Returns how many threads a session should use by default: 0 (ONNX Runtime's choice, one for each
// core) if this process may use the whole machine, or else as many as its CPU affinity and cgroup
// quota permit. More threads would only compete with each other.
int DefaultThreads();

}  // namespace nereid::onnxruntime
