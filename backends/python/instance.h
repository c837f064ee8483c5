// SPDX-License-Identifier: Apache-2.0
// An instance of a Python model: a worker that executes its batches, and another one when it dies.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "python_backend/calls.h"
#include "python_backend/encode.h"
#include "python_backend/model.h"

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
  enum class State { kStarting, kReady, kFailed, kStopping };
  struct Times {
    uint64_t exec_start = 0;
    uint64_t compute_start = 0;
    uint64_t compute_end = 0;
  };

  Instance(TRITONBACKEND_ModelInstance* handle, Model& model) : handle_(handle), model_(model) {}

  backend::Error Initialize();
  backend::Error StartWorker();
  // Starts workers in the place of dead ones, until the end.
  void Keep();
  // A worker, and the requests that it has.
  struct Active {
    std::shared_ptr<Worker> worker;
    std::shared_ptr<PendingTable> pending;
    bool asks_ready = false;  // the model has is_ready
  };
  // Perhaps after waiting for a new one to be ready.
  backend::Result<Active> AcquireWorker();
  // The worker if it is ready now.
  Active ReadyWorker();

  // A batch that a worker has.
  struct Execution {
    Active active;
    BatchEncoder::Encoded batch;
  };
  void TakeBatch(TRITONBACKEND_Request** requests, uint32_t count);
  // Puts the batch where the worker finds it.
  backend::Result<Execution> Encode(Active active);
  backend::Error Run();
  // Answers the batch, from what the worker said.
  backend::Error Complete(Execution& execution, backend::Result<Worker::Answer> answer);
  backend::Error ReadAnswer(const Worker& worker, std::span<const char> payload);
  void Finish(const backend::Error& error, Lender* lender = nullptr);
  uint64_t BatchSize() const;

  TRITONBACKEND_ModelInstance* const handle_;
  Model& model_;
  std::string arguments_;  // of initialize, as JSON
  CallContext context_;

  // Of the batch in execution.
  struct Item {
    TRITONBACKEND_Request* request;
    std::shared_ptr<Pending> pending;
    uint64_t handle = 0;  // in the table
    ModelResponse response;
  };
  std::vector<Item> batch_;
  Times times_;
  std::optional<Execution> begun_;  // by Begin
  std::shared_ptr<PendingTable> table_;  // null until there is a worker for it
  std::vector<Numbered> numbered_;
  BatchEncoder encoder_;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kStarting;
  Active active_;
  std::string failure_;      // why there is no worker
  std::thread keeper_;
};

}  // namespace nereid::python
