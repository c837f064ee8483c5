// SPDX-License-Identifier: Apache-2.0
// What all models of the backend share: ONNX Runtime's environment, and our operators for it.
#pragma once

#include <memory>

#include "onnxruntime_backend/environment.h"

namespace nereid::caffe2 {

// Thread-safe: immutable after Create.
class Backend {
 public:
  // Reads the command line (--backend-config=caffe2,...), which is that of the ONNX Runtime
  // backend.
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);

  const onnxruntime::Environment& environment() const { return *environment_; }
  OrtCustomOpDomain* domain() const { return domain_.get(); }

 private:
  Backend() = default;

  std::unique_ptr<onnxruntime::Environment> environment_;
  onnxruntime::Owned<OrtCustomOpDomain> domain_;
};

}  // namespace nereid::caffe2
