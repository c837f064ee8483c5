// SPDX-License-Identifier: Apache-2.0
// One instance of a model: gathers a batch, runs the shared session, and distributes the outputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onnxruntime_backend/feeding.h"
#include "onnxruntime_backend/gathering.h"
#include "onnxruntime_backend/model.h"
#include "onnxruntime_backend/plan.h"
#include "onnxruntime_backend/plan_maker.h"
#include "onnxruntime_backend/scattering.h"

namespace nereid::onnxruntime {

// An instance. Confined to the thread that executes; different instances of one model run
// concurrently.
class Instance {
 public:
  // Gets the session of the instance's device from `model`, which outlives the instance.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);

  // Creates an instance with the properties that the other Create reads from `handle`. For tests,
  // whose fake server lacks them.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           std::string name,
                                                           const backend::ModelConfig& config,
                                                           const Settings& settings,
                                                           std::shared_ptr<Session> session);

  // Takes ownership of the requests: all have a response and are released on return.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  Instance(TRITONBACKEND_ModelInstance* handle, std::string name,
           const backend::ModelConfig& config, std::shared_ptr<Session> session,
           Owned<OrtMemoryInfo> memory_info, Owned<OrtRunOptions> run_options);

  // Executes the batch; requests that cannot be executed fail in batch_.
  uint64_t Serve();
  // Executes the requests that gathering_ has read.
  backend::Error ServeRead();
  backend::Error ServePlan(Plan& plan);
  // Runs the session on input_values_ into output_values_.
  backend::Error Run(const Plan& plan);
  // Puts made_values_ and passed-on inputs in output_values_.
  void TakeOutputs(const Plan& plan);
  // Sets output_values_ to memory that is ready for outputs; ONNX Runtime allocates the others.
  void PrepareOutputs(Plan& plan);
  // Uses the buffer of the only member's response as memory for a large output, if possible.
  backend::Error PrepareDirect(const PlannedOutput& output, size_t o);
  // Runs again without prepared memory after a failure with it. An output with an unexpected shape
  // fails, too, and its error code does not distinguish it from other failures.
  backend::Error RunAgain(Plan& plan);
  backend::Error DealOut(Plan& plan, size_t o);
  // Called once all responses are filled, because a failed request must leave its sequence
  // unchanged.
  backend::Error UpdateStates(const Plan& plan, size_t o);
  // Reads the shape of a value into shape_.
  backend::Error ReadShape(const OrtValue* value);
  void ReleaseValues();

  TRITONBACKEND_ModelInstance* const handle_;
  const std::shared_ptr<Session> session_;  // shared with the model and its other instances
  const Owned<OrtMemoryInfo> memory_info_;
  const Owned<OrtRunOptions> run_options_;  // null if there are no settings
  const Ports ports_;

  backend::Batch batch_;
  Gathering gathering_;
  PlanMaker plan_maker_;
  Feeding feeding_;
  Scattering scattering_;
  PlanCache plans_;
  std::vector<const OrtValue*> input_values_;
  std::vector<OrtValue*> output_values_;
  std::vector<OrtValue*> made_values_;  // those of output_values_ that operators make
  bool brings_outputs_ = false;         // whether any of output_values_ was prepared
  std::vector<bool> direct_;            // outputs whose memory is that of the response
  std::vector<Owned<OrtValue>>
      owned_values_;  // those of output_values_ that were made for this execution
  std::vector<int64_t> shape_;
};

}  // namespace nereid::onnxruntime
