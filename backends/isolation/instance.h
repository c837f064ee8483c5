// SPDX-License-Identifier: Apache-2.0
// An instance of an isolated model: a process that executes its batches, replaced when it dies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "isolation_backend/service.h"
#include "python_backend/encode.h"
#include "python_backend/keeper.h"

namespace nereid::isolation {

// Confined to the thread that executes, except CheckReady.
class Instance {
 public:
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);
  ~Instance();

  // Responds to all requests and releases them, or leaves this to the process.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);
  // Like Execute, but waits for the process no longer than `patience`. Returns false if End has to
  // be called.
  bool Begin(TRITONBACKEND_Request** requests, uint32_t count, std::chrono::nanoseconds patience);
  void End();
  // Checks whether there is a process that executes, and whether the backend says that it is ready.
  // Any thread may call it.
  backend::Error CheckReady();

 private:
  using ServicePtr = std::shared_ptr<Service>;
  using Clock = std::chrono::steady_clock;

  Instance(TRITONBACKEND_ModelInstance* handle, Model& model, const std::string& name,
           std::string arguments);

  // A batch that a process has.
  struct Execution {
    ServicePtr service;
    python::BatchEncoder::Encoded batch;
  };
  // A request of the batch in execution.
  struct Item {
    TRITONBACKEND_Request* request;  // not used once the process has the batch
    std::shared_ptr<OpenRequest> open;
    uint64_t number = 0;
    RequestEnding ending;
    python::ModelResponse response;
  };

  void TakeBatch(TRITONBACKEND_Request** requests, uint32_t count);
  uint64_t SizeOf(TRITONBACKEND_Request* request) const;
  // Writes the batch to where the process finds it.
  backend::Result<Execution> Encode(ServicePtr service);
  backend::Error Run();
  // Handles what the process has made of the batch.
  backend::Error Complete(Execution& execution, backend::Result<python::WorkResult> result);
  backend::Error ReadResult(python::Worker& worker, std::span<const char> payload);
  void ReportBatch() const;
  void Finish(python::Lender& lender);
  void Fail(const backend::Error& error);

  TRITONBACKEND_ModelInstance* const handle_;
  Model& model_;
  ServiceContext context_;
  // Keeps the process of the batches, and its successors.
  python::Keeper<Service> keeper_;

  std::vector<Item> batch_;
  uint64_t batch_size_ = 0;
  std::optional<Execution> begun_;          // set by Begin
  std::shared_ptr<OpenRequests> requests_;  // of the process that has the batch
  std::vector<python::Numbered> numbered_;
  python::BatchEncoder encoder_;
};

}  // namespace nereid::isolation
