// SPDX-License-Identifier: Apache-2.0
// A model of the backend: a model of the ONNX Runtime backend whose sessions are made from a
// Caffe2 network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe2_backend/backend.h"
#include "caffe2_backend/translate.h"
#include "onnxruntime_backend/model.h"

namespace nereid::caffe2 {

// Thread-safe, as its base.
class Model : public onnxruntime::Model {
 public:
  // Reads the configuration, and completes its outputs if there are none and the server permits.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        const Backend& shared);

 protected:
  // The configuration decides: networks say nothing of batches.
  backend::Result<backend::BatchVerdict> ChooseBatching(
      TRITONBACKEND_Model* handle, const onnxruntime::Session& session) override;
  // Dimensions of outputs that the configuration leaves open may be known to ONNX Runtime.
  backend::Error Check(const onnxruntime::Session& session) const override;
  backend::Result<std::shared_ptr<onnxruntime::Session>> Load(
      const onnxruntime::Placement& placement) override;

 private:
  Model(TRITONBACKEND_Model* handle, const Backend& shared, std::string name, std::string folder,
        backend::ModelConfig config, onnxruntime::Settings settings)
      : onnxruntime::Model(handle, shared.environment(), std::move(name), std::move(folder),
                           std::move(config), std::move(settings)),
        domain_(shared.domain()) {}

  // Reads and translates the files.
  backend::Result<std::string> ToOnnx() const;

  OrtCustomOpDomain* const domain_;
};

}  // namespace nereid::caffe2
