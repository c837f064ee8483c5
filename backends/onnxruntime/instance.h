// SPDX-License-Identifier: Apache-2.0
// One instance of a model: gathers a batch, runs the shared session, deals the outputs out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onnxruntime_backend/gathering.h"
#include "onnxruntime_backend/model.h"
#include "onnxruntime_backend/plan.h"
#include "onnxruntime_backend/scattering.h"

namespace nereid::onnxruntime {

// Confined to the thread that executes; different instances of one model run at the same time.
class Instance {
 public:
  // Gets the session of the instance's device from `model`, which outlives the instance.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);

  // The same with what Create finds out about `handle`: for tests, which have no such server.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           std::string name,
                                                           const backend::ModelConfig& config,
                                                           const Settings& settings,
                                                           std::shared_ptr<Session> session);

  // Owns the requests from here: all are answered and released on return.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  Instance(TRITONBACKEND_ModelInstance* handle, std::string name,
           const backend::ModelConfig& config, std::shared_ptr<Session> session,
           Owned<OrtMemoryInfo> memory_info, Owned<OrtRunOptions> run_options);

  // Serves the batch; fails all or some of it in batch_.
  uint64_t Serve();
  // Serves what gathering_ has read of it.
  backend::Error ServeRead();
  backend::Error ServePlan(Plan& plan);
  // Runs the session on input_values_ into output_values_.
  backend::Error Run(const Plan& plan);
  // Sets output_values_ to the memory that is ready for outputs; the rest ONNX Runtime allocates.
  void PrepareOutputs(Plan& plan);
  // The buffer of the only member's response as memory for a large output, if it can be that.
  backend::Error PrepareDirect(const PlannedOutput& output, size_t o);
  // After a run with prepared memory failed: again without, since an output that has another shape
  // than before fails too, and not by a code that tells it from other failures.
  backend::Error RunAgain(Plan& plan);
  backend::Error DealOut(Plan& plan, size_t o);
  // Once all responses are filled: a request that fails leaves its sequence as it was.
  backend::Error UpdateStates(const Plan& plan, size_t o);
  // Reads the shape of a value into shape_.
  backend::Error ReadShape(const OrtValue* value);
  void ReleaseValues();

  TRITONBACKEND_ModelInstance* const handle_;
  const std::shared_ptr<Session> session_;  // shared with the model and its other instances
  const Owned<OrtMemoryInfo> memory_info_;
  const Owned<OrtRunOptions> run_options_;  // null when there is nothing to say
  const Ports ports_;

  backend::Batch batch_;
  Gathering gathering_;
  Scattering scattering_;
  PlanCache plans_;
  std::vector<const OrtValue*> input_values_;
  std::vector<OrtValue*> output_values_;
  bool brings_outputs_ = false;                // whether any of output_values_ was prepared
  std::vector<bool> direct_;                   // outputs that land in the response by themselves
  std::vector<Owned<OrtValue>> owned_values_;  // of output_values_, those made for this execution
  std::vector<int64_t> shape_;
};

}  // namespace nereid::onnxruntime
