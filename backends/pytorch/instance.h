// SPDX-License-Identifier: Apache-2.0
// One instance of a model: gathers a batch, calls the program, and deals the results out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend_kit/gather.h"
#include "backend_kit/scatter.h"
#include "pytorch_backend/model.h"

namespace nereid::pytorch {

// An instance. Confined to the thread that executes; different instances of one model run
// concurrently.
class Instance {
 public:
  // Gets the program from `model`, which outlives the instance. Fails for instances on GPUs that
  // PyTorch cannot use.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);

  // For tests, which bring a program of their own. `ports` outlives the instance.
  Instance(TRITONBACKEND_ModelInstance* handle, std::string name, const backend::Ports& ports,
           int64_t max_batch_size, std::shared_ptr<const BoundProgram> program);

  // Takes ownership of the requests: all have a response and are released on return.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  // Executes the batch; requests that cannot be executed fail in batch_.
  uint64_t Serve();
  // Executes the requests that gathering_ has read.
  backend::Error ServeRead();
  backend::Error FillInputs();
  // Which tensor of the results output `o` is.
  backend::Result<const ResultTensor*> Find(const Results& results, size_t o) const;
  backend::Error CheckType(const ResultTensor& tensor, size_t o) const;
  // Finds the tensors of the outputs that are wanted.
  backend::Error FindAll(const Results& results);
  backend::Error DealOut(std::shared_ptr<const Results> results);
  // Lets the GPU write output `o` to the response of the only member. Returns false where the
  // general way through host memory is needed.
  backend::Result<bool> DealFromGpu(const Results& results, size_t o);

  TRITONBACKEND_ModelInstance* const handle_;
  const backend::Ports& ports_;
  const std::shared_ptr<const BoundProgram> program_;
  const bool needs_paths_;

  backend::Batch batch_;
  backend::Gathering gathering_;
  backend::Scattering scattering_;
  std::vector<CallInput> inputs_;
  std::vector<const ResultTensor*> found_;  // of each output; null for those nobody wants
};

}  // namespace nereid::pytorch
