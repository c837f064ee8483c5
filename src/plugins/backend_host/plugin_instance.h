// SPDX-License-Identifier: Apache-2.0
// An instance of a model in a backend: the object behind TRITONBACKEND_ModelInstance*. It passes a
// batch to the backend as an array of request handles. From then on the backend owns the requests,
// and responds to and releases them through the C API.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "abi_objects/message.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "config/model_config.h"
#include "core/execution_mark.h"
#include "core/model.h"
#include "core/release_scope.h"
#include "core/scheduler.h"
#include "triton/core/tritonbackend.h"

namespace nereid::backend_host {

class BackendModel;

// The arguments for making an instance.
struct PluginInstanceOptions {
  std::string name;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device_id = 0;
  bool is_passive = false;
  std::string host_policy;
  std::vector<std::string> profiles;
  std::vector<config::InstanceGroup::SecondaryDevice> secondary_devices;
};

// An instance. Confined to the thread that executes, except where core::Instance permits more.
class PluginInstance final : public core::Instance {
 public:
  // Both outlive the instance.
  PluginInstance(BackendModel& backend_model, core::Model& model, PluginInstanceOptions options);
  // Finalizes the instance unless FinalizeOnThread did.
  ~PluginInstance() override;

  // Calls TRITONBACKEND_ModelInstanceInitialize on the calling thread.
  base::Status Initialize();
  // Any thread may call this.
  base::Status CheckReady() const;

  const std::string& name() const override { return options_.name; }
  void Execute(std::span<core::RequestPtr> batch) override;
  bool runs_on_any_thread() const override;
  bool begins_on_any_thread() const override;
  bool Begin(std::span<core::RequestPtr> batch, std::chrono::nanoseconds patience) override;
  void End() override;
  base::Status InitializeOnThread() override { return Initialize(); }
  void FinalizeOnThread() override { Finalize(); }

  // The following are used by the C API.
  const PluginInstanceOptions& options() const { return options_; }
  BackendModel& backend_model() const { return backend_model_; }
  core::Model& model() const { return model_; }
  TRITONSERVER_Message& host_policy_message() { return host_policy_message_; }
  // Whether the batch in execution counts in statistics.
  bool counts_batch() const { return counts_batch_; }
  void* state() const { return state_; }
  void set_state(void* state) { state_ = state; }

 private:
  void Finalize();
  base::Watchdog::Watch WatchExecutions();
  // The batch as the mark knows it.
  core::Request* const* marked_requests() const {
    return reinterpret_cast<core::Request* const*>(handles_.data());
  }
  // Transfers the batch to the backend, as handles_. After an error the backend must not get it.
  base::Status Take(std::span<core::RequestPtr> batch);
  // Sends errors for the requests of the last batch, which the backend refused, and releases them,
  // except those that the backend wrongly released in `scope`.
  void FailBatch(const core::ReleaseScope& scope, const base::Status& error);

  BackendModel& backend_model_;
  core::Model& model_;
  const PluginInstanceOptions options_;
  const bool clears_outputs_;
  const bool uses_host_tensors_;  // inputs must be in host memory
  TRITONSERVER_Message host_policy_message_;
  std::vector<TRITONBACKEND_Request*> handles_;  // of the last batch; keeps its memory
  std::vector<core::RequestRef> released_;       // while a batch runs: see core::ReleaseScope
  core::ExecutionMark mark_;
  base::Watchdog::Watch watch_;  // of the mark
  std::atomic<bool> is_initialized_{false};
  bool counts_batch_ = true;
  void* state_ = nullptr;
};

}  // namespace nereid::backend_host
