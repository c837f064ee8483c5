// SPDX-License-Identifier: Apache-2.0
// A loaded ONNX model: ONNX Runtime's session and its description of the tensors.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnxruntime_backend/environment.h"
#include "onnxruntime_backend/settings.h"

namespace nereid::onnxruntime {

// One tensor as the model declares it; -1 for variable dimensions. Immutable.
struct TensorInfo {
  std::string name;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> dims;
};

// Returns the tensor called `name`, or null.
const TensorInfo* FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name);

// An output of the model that is not a tensor, which responses cannot contain.
struct OtherOutput {
  std::string name;
  std::string_view kind;  // ONNX Runtime's name of the type
};

// All inputs and outputs of the model, in the model's order. Immutable.
struct Signature {
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  std::vector<TensorInfo> initializers;  // constants that a request may override
  std::vector<OtherOutput> other_outputs = {};
};

// Returns the error for a configuration that requires `output`; it explains how to get a tensor
// instead.
backend::Error NoTensorError(const OtherOutput& output, const Signature& signature);

// The device of a session.
struct Placement {
  bool gpu = false;
  int device = 0;
  bool operator==(const Placement&) const = default;
};

// A session. Thread-safe: immutable after Load, and ONNX Runtime runs one session on many threads.
class Session {
 public:
  // Loads the model file. `model_name` is for error texts, which also list the available providers
  // if one in the settings is missing. `environment` outlives the session.
  static backend::Result<std::shared_ptr<Session>> Load(const Environment& environment,
                                                        const std::string& path,
                                                        const Settings& settings,
                                                        const Placement& placement,
                                                        const std::string& model_name);
  // Loads a model from the bytes of an ONNX file, which are only read during the call. The
  // operators of `domain` are known to it; `domain` outlives the session.
  static backend::Result<std::shared_ptr<Session>> LoadBytes(
      const Environment& environment, std::string_view bytes, OrtCustomOpDomain* domain,
      const Settings& settings, const Placement& placement, const std::string& model_name);

  OrtSession* get() const { return session_.get(); }
  const Placement& placement() const { return placement_; }
  // The size of the model's file and of those with its weights, or of the bytes that it was loaded
  // from.
  uint64_t file_bytes() const { return file_bytes_; }
  // Memory of the session's GPU; null for a session on the CPU.
  const OrtMemoryInfo* gpu_memory() const { return gpu_memory_.get(); }
  const Signature& signature() const { return signature_; }

 private:
  Session() = default;
  // Makes a session of which all but the model is set.
  static backend::Result<std::shared_ptr<Session>> Prepare(const Placement& placement,
                                                           uint64_t file_bytes);

  Owned<OrtSession> session_;
  Placement placement_;
  uint64_t file_bytes_ = 0;
  Owned<OrtMemoryInfo> gpu_memory_;
  Signature signature_;
};

}  // namespace nereid::onnxruntime
