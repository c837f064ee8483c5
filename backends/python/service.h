// SPDX-License-Identifier: Apache-2.0
// A worker in the service of an instance: it runs the instance's model, has its requests, and makes
// its calls. Workers serve an instance one after the other; all state of one ends with it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "python_backend/calls.h"
#include "python_backend/model.h"

namespace nereid::python {

// What the workers of one instance share. Outlives them.
struct ServiceContext {
  CallContext calls;
  Model& model;
  TRITONBACKEND_ModelInstance* instance;
  std::string arguments;  // for initialize, as JSON
  Worker::DeathHandler on_death;
};

// Thread-safe; Keeper describes each function.
class Service final : public Watched {
 public:
  // Starts the process, or takes one that was started before.
  static backend::Result<std::shared_ptr<Service>> Create(ServiceContext& context);
  Service(ServiceContext& context, std::shared_ptr<Worker> worker,
          std::shared_ptr<PendingTable> pending)
      : context_(context),
        timeout_(context.model.timeout()),
        worker_(std::move(worker)),
        pending_(std::move(pending)) {}

  const std::shared_ptr<Worker>& worker() const { return worker_; }
  // The requests that the worker has.
  const std::shared_ptr<PendingTable>& pending() const { return pending_; }

  backend::Error Initialize();
  // Asks the model's is_ready, if it has one. REQUIRES: Initialize succeeded.
  backend::Error CheckReady();
  void Kill(const std::string& why) { worker_->Condemn(why); }
  void Bury();
  bool is_alive() const { return worker_->is_alive(); }
  std::string DeathMessage() const { return worker_->DeathMessage(); }
  // Whether it has executed anything; NoteServed says so.
  bool has_served() const { return has_served_.load(); }
  void NoteServed() { has_served_.store(true); }
  // Lets the model finalize until `deadline`. Not concurrent with any other call.
  void Finalize(std::chrono::steady_clock::time_point deadline);
  // Ends the worker if it takes too long for a request.
  bool Look() override;
  bool needs_looks() const override { return false; }

 private:
  void ReportMemory() const;

  ServiceContext& context_;
  const std::optional<std::chrono::milliseconds> timeout_;
  const std::shared_ptr<Worker> worker_;
  const std::shared_ptr<PendingTable> pending_;
  std::atomic<bool> asks_ready_{false};  // whether the model has is_ready
  std::atomic<bool> has_served_{false};
};

}  // namespace nereid::python
