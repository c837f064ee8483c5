// SPDX-License-Identifier: Apache-2.0
// An instance of a Python model: a worker that executes its batches, replaced when it dies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python_backend/encode.h"
#include "python_backend/keeper.h"
#include "python_backend/service.h"

namespace nereid::python {

// One instance. Confined to the thread that executes, except CheckReady.
class Instance {
 public:
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);
  ~Instance();

  // Responds to all requests and releases them, or leaves this to the model if it is decoupled.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);
  // Like Execute, but waits for the worker no longer than `patience`. Returns false if End has to
  // be called.
  bool Begin(TRITONBACKEND_Request** requests, uint32_t count, std::chrono::nanoseconds patience);
  void End();
  // Checks whether there is a worker that executes, and whether the model says that it is ready.
  // Any thread may call it.
  backend::Error CheckReady();

 private:
  // When an execution reached its stages, in nanoseconds of the server's clock.
  struct Times {
    uint64_t exec_start = 0;
    uint64_t compute_start = 0;
    uint64_t compute_end = 0;
  };

  using ServicePtr = std::shared_ptr<Service>;

  Instance(TRITONBACKEND_ModelInstance* handle, Model& model, const std::string& name,
           std::string arguments);

  // A batch that a worker has.
  struct Execution {
    ServicePtr service;
    BatchEncoder::Encoded batch;
  };
  void TakeBatch(TRITONBACKEND_Request** requests, uint32_t count);
  // Writes the batch to where the worker finds it.
  backend::Result<Execution> Encode(ServicePtr service);
  backend::Error Run();
  // Responds to the batch according to the worker's result.
  backend::Error Complete(Execution& execution, backend::Result<WorkResult> result);
  backend::Error ReadResponses(const Worker& worker, std::span<const char> payload);
  void Finish(const backend::Error& error, Lender* lender = nullptr);
  uint64_t BatchSize() const;

  TRITONBACKEND_ModelInstance* const handle_;
  Model& model_;
  ServiceContext context_;
  // Keeps the worker of the batches, and its successors.
  Keeper<Service> keeper_;

  // A request of the batch in execution.
  struct Item {
    TRITONBACKEND_Request* request;
    std::shared_ptr<Pending> pending;
    uint64_t handle = 0;  // the request's number in the table
    ModelResponse response;
  };
  std::vector<Item> batch_;
  Times times_;
  std::optional<Execution> begun_;       // set by Begin
  std::shared_ptr<PendingTable> table_;  // null until there is a worker
  std::vector<Numbered> numbered_;
  BatchEncoder encoder_;
};

}  // namespace nereid::python
