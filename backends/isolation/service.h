// SPDX-License-Identifier: Apache-2.0
// A process in the service of an instance: it runs the instance's model and has its requests.
// Processes serve an instance one after the other; all state of one ends with it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "backend_kit/responses.h"
#include "isolation_backend/model.h"
#include "isolation_backend/open_requests.h"

namespace nereid::isolation {

// What the processes of one instance share. Outlives them.
struct ServiceContext {
  std::string name;  // of the instance
  Model& model;
  TRITONBACKEND_ModelInstance* instance;
  std::string arguments;  // for making the instance: keys and values as in a greeting
  python::Worker::DeathHandler on_death;
  backend::BackgroundWork slow_clients;  // sends responses for which their clients are too slow
};

// Thread-safe; python::Keeper describes the functions that it calls.
class Service final : public python::Watched {
 public:
  static backend::Result<std::shared_ptr<Service>> Create(ServiceContext& context);
  Service(ServiceContext& context, Model::Made made, std::shared_ptr<OpenRequests> requests)
      : context_(context),
        has_memory_limit_(context.model.settings().memory_bytes != 0),
        worker_(std::move(made.worker)),
        has_model_(made.has_model),
        requests_(std::move(requests)) {}

  const std::shared_ptr<python::Worker>& worker() const { return worker_; }
  // The requests that the process has.
  const std::shared_ptr<OpenRequests>& requests() const { return requests_; }

  backend::Error Initialize();
  // Asks the backend, if it can tell, whether the instance is ready. REQUIRES: Initialize
  // succeeded.
  backend::Error CheckReady();
  void Kill(const std::string& why) { worker_->Condemn(why); }
  void Bury();
  bool is_alive() const { return worker_->is_alive(); }
  std::string DeathMessage() const { return worker_->DeathMessage(); }
  // Whether it has executed anything; NoteServed says so.
  bool has_served() const { return has_served_.load(); }
  void NoteServed() { has_served_.store(true); }
  // Ends the process if it is beyond its limits, and tells it of requests that were cancelled.
  bool Look() override;
  bool needs_looks() const override { return has_memory_limit_; }
  // Describes why the requests fail that the dead process had.
  backend::Error FailureOfRequests() const;
  // Lets the backend finalize until `deadline`. Not concurrent with any other call.
  void Finalize(std::chrono::steady_clock::time_point deadline);

 private:
  void ReportMemory() const;
  void CheckMemory();

  // From now on Look does nothing.
  void Retire();

  ServiceContext& context_;  // gone once this is retired
  const bool has_memory_limit_;
  const std::shared_ptr<python::Worker> worker_;
  const bool has_model_;  // whether the process has loaded it before
  const std::shared_ptr<OpenRequests> requests_;
  std::atomic<bool> asks_ready_{false};
  std::atomic<bool> has_served_{false};
  backend::Mutex look_mutex_;  // held by Look; acquired before that of questions
  bool is_retired_ NEREID_KIT_GUARDED_BY(look_mutex_) = false;
};

}  // namespace nereid::isolation
