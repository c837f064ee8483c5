// SPDX-License-Identifier: Apache-2.0
// What a model configuration and --backend-config=tensorrt,… say to this backend.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/config.h"
#include "tensorrt_backend/driver.h"

namespace nereid::tensorrt {

// Shapes for which a CUDA graph is captured (optimization.cuda.graph_spec). Immutable.
struct GraphSpec {
  using Shapes = std::map<std::string, std::vector<int64_t>, std::less<>>;

  int64_t batch_size = 0;  // 0 without batching
  Shapes shapes;           // without the batch dimension; empty: those the profile is made for
  // Smaller executions down to these use the graph, too.
  int64_t lower_batch_size = 0;
  Shapes lower_shapes;
  bool has_lower_bound = false;
};

// The settings of a model. Immutable.
struct Settings {
  std::string model_filename;  // "model.plan" unless default_model_filename is set
  // cc_model_filenames: names for devices of a compute capability like "9.0".
  std::map<std::string, std::string, std::less<>> filenames_by_capability;
  Stream::Priority priority = Stream::Priority::kDefault;
  bool has_output_stream = false;
  bool is_busy_waiting = false;
  bool pins_inputs = true;
  bool pins_outputs = true;
  bool uses_graphs = false;
  std::vector<GraphSpec> graphs;  // if uses_graphs

  // Fails, with Triton's texts, for graphs that the model cannot have.
  static backend::Result<Settings> FromConfig(const backend::ModelConfig& config);
  const std::string& FilenameFor(const Capability& capability) const;
};

// The settings of the backend. Immutable.
struct BackendSettings {
  std::string library;               // empty: TensorRT's own names
  std::vector<std::string> plugins;  // libraries with layers of the user's
  bool is_version_compatible = false;

  // `json` is the backend's configuration; may be empty.
  static backend::Result<BackendSettings> FromJson(std::string_view json);
};

}  // namespace nereid::tensorrt
