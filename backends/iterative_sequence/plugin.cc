// SPDX-License-Identifier: Apache-2.0
// The iterative_sequence backend, for trying out generative (iterative) sequences: a request with
// INPUT = n is executed n times, each time with a response OUTPUT = n-1, ..., 0, and rescheduled in
// between. Models are those of Triton's test backend of the same name, decoupled and with
// sequence_batching { iterative_sequence: true }; parameter reschedule_delay_ms is how long an
// execution waits before it releases the request (500).
#include <thread>
#include <unordered_map>

#include "backend_kit/batch.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"
#include "backend_kit/tensors.h"

namespace nereid::iterative_sequence {
namespace {

using backend::Error;
using backend::InputView;
using backend::LogIfError;
using backend::NowNs;
using backend::Result;

// A model. Immutable.
struct Model {
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                               backend::NoBackendState&) {
    NEREID_KIT_ASSIGN(const backend::ModelConfig config, backend::ModelConfig::Load(handle));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "input", {{"INPUT", "TYPE_INT32", {1}}}));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "output", {{"OUTPUT", "TYPE_INT32", {1}}}));
    NEREID_KIT_ASSIGN(const int delay_ms, config.IntParameter("reschedule_delay_ms", 500));
    auto model = std::make_unique<Model>();
    model->delay = std::chrono::milliseconds(delay_ms);
    model->output_shape.assign(config.max_batch_size() > 0 ? 2 : 1, 1);
    return model;
  }

  std::chrono::milliseconds delay{0};
  std::vector<int64_t> output_shape;
};

// An instance. Confined to the thread that executes.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                  Model& model) {
    NEREID_KIT_TRY(backend::RequireCpu(handle, "iterative_sequence"));
    return std::make_unique<Instance>(handle, model);
  }
  Instance(TRITONBACKEND_ModelInstance* handle, const Model& model)
      : handle_(handle), model_(model) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    const uint64_t start_ns = NowNs();
    for (uint32_t r = 0; r < count; ++r) {
      ExecuteOne(requests[r]);
    }
    const uint64_t end_ns = NowNs();
    LogIfError(Error(TRITONBACKEND_ModelInstanceReportBatchStatistics(handle_, count, start_ns,
                                                                      start_ns, end_ns, end_ns)),
               "failed reporting batch request statistics");
  }

 private:
  void ExecuteOne(TRITONBACKEND_Request* request) {
    const uint64_t start_ns = NowNs();
    TRITONBACKEND_Response* response = nullptr;
    Error error(TRITONBACKEND_ResponseNew(&response, request));
    bool is_last = true;
    if (error.ok()) {
      auto left = Step(request, response);
      is_last = !left.ok() || left.value() <= 0;
      if (!left.ok()) error = left.TakeError();
    }
    std::this_thread::sleep_for(model_.delay);
    const uint64_t end_ns = NowNs();
    LogIfError(Error(TRITONBACKEND_ModelInstanceReportStatistics(
                   handle_, request, error.ok(), start_ns, start_ns, end_ns, end_ns)),
               "failed reporting request statistics");
    // The request is released first, so that the response can report a failure to reschedule it.
    bool is_released = false;
    if (!is_last) {
      error = Error(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
      is_released = error.ok();
      is_last = !is_released;
    }
    if (response != nullptr) {
      LogIfError(Error(TRITONBACKEND_ResponseSend(
                     response, is_last ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, error.get())),
                 "failed to send response");
    }
    if (!is_released) {
      LogIfError(Error(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL)),
                 "failed releasing request");
    }
  }

  // Fills the response and returns how many responses remain after it.
  Result<int32_t> Step(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response) {
    uint64_t id = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestCorrelationId(request, &id));
    bool is_cancelled = false;
    NEREID_KIT_TRY(TRITONBACKEND_RequestIsCancelled(request, &is_cancelled));
    if (is_cancelled) {
      left_.erase(id);
      return Error(TRITONSERVER_ERROR_CANCELLED, "request was cancelled");
    }
    TRITONBACKEND_Input* handle = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, "INPUT", &handle));
    NEREID_KIT_ASSIGN(const InputView input, backend::ReadInput(handle));
    int32_t first = 0;
    NEREID_KIT_TRY(backend::CopyInput(input, {reinterpret_cast<char*>(&first), sizeof(first)}));
    const int32_t left = --left_.try_emplace(id, first).first->second;
    if (left <= 0) {
      left_.erase(id);
    }
    NEREID_KIT_ASSIGN(char* const to,
                      backend::AddOutput(response, "OUTPUT", TRITONSERVER_TYPE_INT32,
                                         model_.output_shape, sizeof(left)));
    std::memcpy(to, &left, sizeof(left));
    return left;
  }

  TRITONBACKEND_ModelInstance* const handle_;
  const Model& model_;
  std::unordered_map<uint64_t, int32_t> left_;  // remaining responses, by correlation id
};

}  // namespace
}  // namespace nereid::iterative_sequence

NEREID_KIT_ENTRY_POINTS(nereid::backend::NoBackendState, nereid::iterative_sequence::Model,
                        nereid::iterative_sequence::Instance, NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
