// SPDX-License-Identifier: Apache-2.0
// The `parameters` of a model's configuration, with Triton's names.
#pragma once

#include <optional>
#include <string>

#include "backend_kit/config.h"

namespace nereid::pytorch {

// Immutable.
struct Settings {
  std::string model_filename;  // empty: the platform's default
  bool is_compiled = false;    // a package of AOTInductor: platform torch_aoti
  bool optimized_execution = true;
  bool inference_mode = true;
  bool cudnn = true;            // only for GPUs
  bool cache_cleaning = false;  // only for GPUs
  // Without a value, instances share their weights if the model does not change itself.
  std::optional<bool> weight_sharing;
  // Without a value, PyTorch's own. They count for the whole process.
  std::optional<bool> tensor_fuser;
  std::optional<bool> jit_profiling;
  std::optional<bool> jit_executor;
  // 0: PyTorch's choice. The first model that sets one decides for the process.
  int intra_op_threads = 0;
  int inter_op_threads = 0;

  // Fails for values that are not booleans or numbers, naming the parameter.
  static backend::Result<Settings> FromConfig(const backend::ModelConfig& config);
};

}  // namespace nereid::pytorch
