// SPDX-License-Identifier: Apache-2.0
// What a model configuration asks of ONNX Runtime, read from Triton's fields and parameters.
#pragma once

#include <onnxruntime_c_api.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/config.h"

namespace nereid::onnxruntime {

// An entry of optimization.execution_accelerators. Immutable.
struct Accelerator {
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;
};

// Immutable.
struct Settings {
  GraphOptimizationLevel graph_level = ORT_ENABLE_ALL;
  ExecutionMode execution_mode = ORT_SEQUENTIAL;
  int intra_op_threads = 0;  // 0 leaves the choice to DefaultThreads
  int inter_op_threads = 0;
  std::optional<bool> memory_arena;
  std::optional<bool> memory_pattern;
  std::vector<std::pair<std::string, std::string>> session_entries;  // session.*, mlas.*, …
  std::vector<std::pair<std::string, std::string>> run_entries;      // memory.*
  std::vector<std::pair<std::string, std::string>> cuda_options;     // deprecated parameters
  std::vector<Accelerator> cpu_accelerators;
  std::vector<Accelerator> gpu_accelerators;
  std::vector<std::string> op_libraries;
  std::string model_filename;  // "model.onnx" unless default_model_filename says otherwise

  static backend::Result<Settings> FromConfig(const backend::ModelConfig& config);
};

// How many threads a session should use where ONNX Runtime would take one for each core of the
// machine: 0 (its own choice) when this process may use the whole machine, else as many as its CPU
// affinity and its control group's quota allow. Threads beyond those would only spin against each
// other.
int DefaultThreads();

}  // namespace nereid::onnxruntime
