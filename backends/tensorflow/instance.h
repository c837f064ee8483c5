// SPDX-License-Identifier: Apache-2.0
// One instance of a model: gathers a batch, runs the graph, and deals the outputs out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend_kit/gather.h"
#include "backend_kit/scatter.h"
#include "tensorflow_backend/model.h"

namespace nereid::tensorflow {

// An instance. Confined to the thread that executes; different instances of one model run
// concurrently.
class Instance {
 public:
  // Gets the session from `model`, which outlives the instance. Fails for instances on GPUs.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);

  // For tests, which bring a request of their own. `ports` outlives the instance; `session` is kept
  // as long as the request.
  Instance(TRITONBACKEND_ModelInstance* handle, std::string name, const backend::Ports& ports,
           int64_t max_batch_size, std::shared_ptr<Session> session,
           std::unique_ptr<Request> request);

  // Takes ownership of the requests: all have a response and are released on return.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  // Executes the batch; requests that cannot be executed fail in batch_.
  uint64_t Serve();
  // Executes the requests that gathering_ has read.
  backend::Error ServeRead();
  backend::Error FillInputs();
  void DealOut(bool to_states);

  TRITONBACKEND_ModelInstance* const handle_;
  const backend::Ports& ports_;
  const std::shared_ptr<Session> session_;
  const std::unique_ptr<Request> request_;

  backend::Batch batch_;
  backend::Gathering gathering_;
  backend::Scattering scattering_;
  std::vector<CallInput> inputs_;
  std::vector<char> wanted_;  // of each output
};

}  // namespace nereid::tensorflow
