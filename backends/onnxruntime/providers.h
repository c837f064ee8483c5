// SPDX-License-Identifier: Apache-2.0
// Execution accelerators of a model configuration as execution providers of ONNX Runtime.
#pragma once

#include <string>
#include <vector>

#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// An accelerator's name in a configuration and its provider. Immutable.
struct Provider {
  std::string_view accelerator;
  const char* provider;
  const char* generic_name;  // for SessionOptionsAppendExecutionProvider; null for CUDA, TensorRT
};

// Whether the library has a provider for NVIDIA's GPUs. (Whether it can be opened shows at the
// first session.)
bool HasCuda();

// Returns null for an unknown accelerator.
const Provider* FindProvider(std::string_view accelerator);

// Returns an error with model, accelerator and `available` if the accelerator is unknown or its
// provider is not in `available`; success otherwise.
backend::Error CheckAccelerator(const std::string& model_name, const std::string& accelerator,
                                const std::vector<std::string>& available);

// Translates the parameters of the TensorRT accelerator to options of its provider: precision_mode
// and max_workspace_size_bytes have their own names in Triton, all others have TensorRT's prefix.
backend::Result<std::vector<std::pair<std::string, std::string>>> TensorRtOptions(
    const backend::Accelerator& accelerator);

// Fails for options of the CUDA provider that are addresses in this process.
backend::Error CheckCudaOptions(const std::string& model_name,
                                const std::vector<std::pair<std::string, std::string>>& options);

// Adds the providers in the settings for this placement to the options of a session. Fails if the
// library lacks one of them, or support for KIND_GPU.
backend::Error AddProviders(OrtSessionOptions* options, const Settings& settings,
                            const Placement& placement, const std::string& model_name);

}  // namespace nereid::onnxruntime
