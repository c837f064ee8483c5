// SPDX-License-Identifier: Apache-2.0
// Execution accelerators of a model configuration as execution providers of ONNX Runtime.
#pragma once

#include <string>
#include <vector>

#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// An accelerator's name in a configuration and the provider behind it. Immutable.
struct Provider {
  std::string_view accelerator;
  const char* provider;
  const char* generic_name;  // for SessionOptionsAppendExecutionProvider; null for CUDA, TensorRT
};

// Null for a name that is no accelerator's.
const Provider* FindProvider(std::string_view accelerator);

// An error that names model, accelerator and `available` if the accelerator is unknown or its
// provider is not among `available`; success otherwise.
backend::Error CheckAccelerator(const std::string& model_name, const std::string& accelerator,
                                const std::vector<std::string>& available);

// The options of TensorRT's provider that the parameters of its accelerator mean: precision_mode
// and max_workspace_size_bytes have their own names in Triton, all others carry TensorRT's prefix.
backend::Result<std::vector<std::pair<std::string, std::string>>> TensorRtOptions(
    const Accelerator& accelerator);

// Adds what the settings name for this placement to the options of a session. Fails when anything
// they name, or KIND_GPU, is more than the library can do.
backend::Error AddProviders(OrtSessionOptions* options, const Settings& settings,
                            const Placement& placement, const std::string& model_name);

}  // namespace nereid::onnxruntime
