// SPDX-License-Identifier: Apache-2.0
// One instance of a model: gathers a batch, runs the program, and deals the outputs out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend_kit/gather.h"
#include "backend_kit/scatter.h"
#include "openvino_backend/model.h"

namespace nereid::openvino {

// An instance. Confined to the thread that executes; different instances of one model run
// concurrently.
class Instance {
 public:
  // Makes a request of the program on the instance's device. `model` outlives the instance.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);

  // Takes ownership of the requests: all have a response and are released on return.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  Instance(TRITONBACKEND_ModelInstance* handle, std::string name, const Model& model,
           std::unique_ptr<Request> request);

  // Executes the batch; requests that cannot be executed fail in batch_.
  uint64_t Serve();
  // Executes the requests that gathering_ has read.
  backend::Error ServeRead();
  backend::Error FillInputs();
  // Adds rows of zeros, or empty strings, to an input until it has as many as the program needs.
  backend::Error AddRows(size_t i, CallInput* input);
  backend::Error DealOut(bool to_states);

  TRITONBACKEND_ModelInstance* const handle_;
  const backend::Ports& ports_;
  const Binding& binding_;
  const int64_t fixed_batch_;
  const std::unique_ptr<Request> request_;

  backend::Batch batch_;
  backend::Gathering gathering_;
  backend::Scattering scattering_;
  std::vector<CallInput> inputs_;  // in the program's order

  // An input with rows added.
  struct Padded {
    std::vector<int64_t> shape;
    backend::ScratchBuffer bytes;
    std::vector<std::string_view> strings;
  };
  std::vector<Padded> padded_;
  std::vector<int64_t> shape_;
};

}  // namespace nereid::openvino
