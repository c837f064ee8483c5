// SPDX-License-Identifier: Apache-2.0
// An instance of a Python model: a worker that executes its batches, and another one when it dies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python_backend/encode.h"
#include "python_backend/keeper.h"
#include "python_backend/service.h"

namespace nereid::python {

// Confined to the thread that executes, but for CheckReady.
class Instance {
 public:
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);
  ~Instance();

  // Answers and releases all requests, or leaves that to the model where it is decoupled.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);
  // The same without waiting longer than `patience` for the worker; false when End is to be called.
  bool Begin(TRITONBACKEND_Request** requests, uint32_t count, std::chrono::nanoseconds patience);
  void End();
  // Whether there is a worker that executes, and the model says that it is ready. Any thread.
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
  // Puts the batch where the worker finds it.
  backend::Result<Execution> Encode(ServicePtr service);
  backend::Error Run();
  // Answers the batch, from what the worker said.
  backend::Error Complete(Execution& execution, backend::Result<WorkResult> result);
  backend::Error ReadResponses(const Worker& worker, std::span<const char> payload);
  void Finish(const backend::Error& error, Lender* lender = nullptr);
  uint64_t BatchSize() const;

  TRITONBACKEND_ModelInstance* const handle_;
  Model& model_;
  ServiceContext context_;
  // Of the batches' worker, and of those that follow it.
  Keeper<Service> keeper_;

  // Of the batch in execution.
  struct Item {
    TRITONBACKEND_Request* request;
    std::shared_ptr<Pending> pending;
    uint64_t handle = 0;  // in the table
    ModelResponse response;
  };
  std::vector<Item> batch_;
  Times times_;
  std::optional<Execution> begun_;       // by Begin
  std::shared_ptr<PendingTable> table_;  // null until there is a worker for it
  std::vector<Numbered> numbered_;
  BatchEncoder encoder_;
};

}  // namespace nereid::python
