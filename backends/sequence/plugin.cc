// SPDX-License-Identifier: Apache-2.0
// The sequence backend, for trying out the Direct sequence batcher: an accumulator for each
// position in the batch. Controls START and READY; input INPUT and output OUTPUT of the same shape
// and type INT32. While READY is set, the elements of INPUT are added to the accumulator, which
// START clears first, and every element of OUTPUT is its value. Models are those of Triton's test
// backend of the same name; parameter execute_delay_ms delays each execution.
#include <thread>

#include "backend_kit/batch.h"
#include "backend_kit/controls.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"

namespace nereid::sequence {
namespace {

using backend::Error;
using backend::InputView;
using backend::Result;

// A model. Immutable.
struct Model {
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                               backend::NoBackendState&) {
    NEREID_KIT_ASSIGN(const backend::ModelConfig config, backend::ModelConfig::Load(handle));
    NEREID_KIT_TRY(backend::ExpectControls(config, {"START", "READY"}));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "input", {{"INPUT", "TYPE_INT32", {}}}));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "output", {{"OUTPUT", "TYPE_INT32", {}}}));
    NEREID_KIT_ASSIGN(const int delay_ms, config.IntParameter("execute_delay_ms", 0));
    auto model = std::make_unique<Model>();
    model->delay = std::chrono::milliseconds(delay_ms);
    model->slots = static_cast<size_t>(std::max<int64_t>(1, config.max_batch_size()));
    model->batching = config.max_batch_size() > 0;
    return model;
  }

  std::chrono::milliseconds delay{0};
  size_t slots = 1;
  bool batching = false;
};

// An instance. Confined to the thread that executes.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                  Model& model) {
    return std::make_unique<Instance>(handle, model);
  }
  Instance(TRITONBACKEND_ModelInstance* handle, const Model& model)
      : handle_(handle), model_(model), accumulators_(model.slots) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    batch_.Process(handle_, requests, count, [&]() -> uint64_t {
      batch_.MarkComputeStart();
      if (count > accumulators_.size()) {
        batch_.FailAll(Error::Unsupported("unable to execute batch larger than max-batch-size"));
        return 0;
      }
      std::this_thread::sleep_for(model_.delay);
      for (uint32_t r = 0; r < count; ++r) {
        if (!batch_.live(r)) continue;
        if (Error error = Accumulate(r); !error.ok()) batch_.Fail(r, std::move(error));
      }
      batch_.MarkComputeEnd();
      return count;
    });
  }

 private:
  Error Accumulate(uint32_t r) {
    TRITONBACKEND_Request* const request = batch_.request(r);
    NEREID_KIT_ASSIGN(const bool start, backend::ReadControl(request, "START"));
    NEREID_KIT_ASSIGN(const bool ready, backend::ReadControl(request, "READY"));
    if (!ready) return {};
    TRITONBACKEND_Input* handle = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, "INPUT", &handle));
    NEREID_KIT_ASSIGN(const InputView input, backend::ReadInput(handle));
    if (model_.batching && !input.shape.empty() && input.shape[0] != 1) {
      return Error::Unsupported("unable to execute more than one timestep at a time");
    }
    values_.resize(input.byte_size / sizeof(int32_t));
    const size_t size = values_.size() * sizeof(int32_t);
    NEREID_KIT_TRY(backend::CopyInput(input, {reinterpret_cast<char*>(values_.data()), size}));
    uint32_t& accumulator = accumulators_[r];
    if (start) accumulator = 0;
    for (const uint32_t value : values_) accumulator += value;
    uint32_t outputs = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestOutputCount(request, &outputs));
    if (outputs == 0) return {};
    NEREID_KIT_ASSIGN(char* const to,
                      backend::AddOutput(batch_.response(r), "OUTPUT", TRITONSERVER_TYPE_INT32,
                                         input.shape, size));
    std::fill(values_.begin(), values_.end(), accumulator);
    if (size > 0) std::memcpy(to, values_.data(), size);
    return {};
  }

  TRITONBACKEND_ModelInstance* const handle_;
  const Model& model_;
  backend::Batch batch_;
  std::vector<uint32_t> accumulators_;  // INT32, whose sums may wrap
  std::vector<uint32_t> values_;
};

}  // namespace
}  // namespace nereid::sequence

NEREID_KIT_ENTRY_POINTS(nereid::backend::NoBackendState, nereid::sequence::Model,
                        nereid::sequence::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
