// SPDX-License-Identifier: Apache-2.0
// A template for backends: OUTPUT is INPUT times the model's parameter "factor". Copy the folder,
// rename the backend in CMakeLists.txt, and replace `Scale` by your code.
#include <cstring>
#include <memory>

#include "backend_kit/batch.h"
#include "backend_kit/config.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"
#include "backend_kit/tensors.h"

namespace {

namespace kit = nereid::backend;

// The state that all instances of a model share. Made when the model is loaded; users see the error
// of Create as the reason why the model is not ready.
class Model {
 public:
  static kit::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                    kit::NoBackendState&) {
    NEREID_KIT_ASSIGN(const kit::ModelConfig config, kit::ModelConfig::Load(handle));
    // An empty list of dimensions accepts one dimension of any size.
    NEREID_KIT_TRY(kit::ExpectTensors(config, "input", {{"INPUT", "TYPE_FP32", {}}}));
    NEREID_KIT_TRY(kit::ExpectTensors(config, "output", {{"OUTPUT", "TYPE_FP32", {}}}));
    auto model = std::make_unique<Model>();
    NEREID_KIT_ASSIGN(model->factor, config.IntParameter("factor", 1));
    model->is_batching = config.max_batch_size() > 0;
    return model;
  }

  int factor = 1;
  bool is_batching = false;
};

// Executes one batch at a time, always on the same thread.
class Instance {
 public:
  static kit::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                       Model& model) {
    NEREID_KIT_TRY(kit::RequireCpu(handle, "scale"));
    return std::make_unique<Instance>(handle, model);
  }
  Instance(TRITONBACKEND_ModelInstance* handle, const Model& model)
      : handle_(handle), model_(model) {}

  // Executes the requests of one batch. `batch_` completes and releases each of them, and keeps the
  // statistics, whatever happens in between.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    batch_.Process(handle_, requests, count, [this]() -> uint64_t {
      uint64_t batch_size = 0;
      batch_.MarkComputeStart();
      for (uint32_t r = 0; r < batch_.size(); ++r) {
        if (kit::Error error = Scale(r, batch_size); !error.ok()) {
          batch_.Fail(r, std::move(error));  // the other requests still succeed
        }
      }
      batch_.MarkComputeEnd();
      return batch_size;
    });
  }

 private:
  kit::Error Scale(uint32_t r, uint64_t& batch_size) {
    if (!batch_.live(r)) {
      return {};
    }
    NEREID_KIT_ASSIGN(const kit::InputView input, kit::ReadInput(batch_.request(r), 0));
    // The client's bytes in place if they are one aligned piece, otherwise a copy in scratch_.
    NEREID_KIT_ASSIGN(const std::span<const char> from,
                      kit::ContiguousInput(input, sizeof(float), scratch_));
    NEREID_KIT_ASSIGN(char* const to, kit::AddOutput(batch_.response(r), "OUTPUT", input.datatype,
                                                     input.shape, input.byte_size));
    const auto* const values = reinterpret_cast<const float*>(from.data());
    auto* const scaled = reinterpret_cast<float*>(to);
    for (size_t i = 0; i < from.size() / sizeof(float); ++i) {
      scaled[i] = values[i] * static_cast<float>(model_.factor);
    }
    // With max_batch_size > 0 the first dimension is the batch.
    batch_size += model_.is_batching ? static_cast<uint64_t>(input.shape[0]) : 1;
    return {};
  }

  TRITONBACKEND_ModelInstance* const handle_;
  const Model& model_;
  kit::Batch batch_;
  kit::ScratchBuffer scratch_;
};

}  // namespace

NEREID_KIT_ENTRY_POINTS(kit::NoBackendState, Model, Instance, 0)
