// SPDX-License-Identifier: Apache-2.0
// A loaded ONNX model: ONNX Runtime's session.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnxruntime_backend/environment.h"
#include "onnxruntime_backend/settings.h"
#include "onnxruntime_backend/signature.h"

namespace nereid::onnxruntime {

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
