// SPDX-License-Identifier: Apache-2.0
#include "backend_host/plugin_instance.h"

#include <algorithm>

#include "abi_objects/error.h"
#include "backend_host/backend_model.h"
#include "backend_host/handles.h"
#include "base/log.h"
#include "core/gpu_inputs.h"

namespace nereid::backend_host {

using abi_objects::CallPlugin;

namespace {

std::string HostPolicyJson(const BackendModel& model, const std::string& policy) {
  const auto& policies = model.libraries().options().host_policies;
  const auto found = policies.find(policy);
  return abi_objects::SettingsJson(policy, found == policies.end() ? Settings() : found->second);
}

}  // namespace

PluginInstance::PluginInstance(BackendModel& backend_model, core::Model& model,
                               PluginInstanceOptions options)
    : backend_model_(backend_model),
      model_(model),
      options_(std::move(options)),
      clears_outputs_(!backend_model.library().writes_outputs()),
      uses_host_tensors_(options_.kind == TRITONSERVER_INSTANCEGROUPKIND_CPU ||
                         backend_model.library().uses_host_tensors()),
      host_policy_message_{HostPolicyJson(backend_model, options_.host_policy)},
      mark_(core::ExecutionMark::Purpose::kExecuting, model.name(), model.version(), options_.name),
      watch_(WatchExecutions()) {
  const auto batch = static_cast<size_t>(std::clamp<int64_t>(model.max_batch_size(), 1, 1024));
  handles_.reserve(batch);
  released_.reserve(batch);
}

base::Watchdog::Watch PluginInstance::WatchExecutions() {
  const BackendLibrariesOptions& server = backend_model_.libraries().options();
  if (server.watchdog == nullptr || options_.is_passive) return {};
  return server.watchdog->Add({.heartbeat = mark_.heartbeat(),
                               .kind = "execution",
                               .name = options_.name,
                               .limit = server.execution_limit,
                               .part = static_cast<const core::Instance*>(this),
                               .owner = &model_});
}

PluginInstance::~PluginInstance() {
  Finalize();
  // What it reported is gone with it, while the model may go on with other instances.
  model_.statistics().SetMemoryUse(ToHandle(this), {});
}

base::Status PluginInstance::Initialize() {
  const auto initialize = backend_model_.library().entry_points().instance_initialize;
  if (initialize != nullptr) {
    core::ExecutionMark mark(core::ExecutionMark::Purpose::kLoading, model_.name(),
                             model_.version(), name());
    const core::ExecutionMark::Call call(mark);
    NEREID_RETURN_IF_ERROR(CallPlugin(initialize, ToHandle(this)));
  }
  is_initialized_.store(true);
  return base::OkStatus();
}

void PluginInstance::Finalize() {
  backend_model_.Forget(*this);
  if (!is_initialized_.exchange(false)) return;
  const auto finalize = backend_model_.library().entry_points().instance_finalize;
  if (finalize == nullptr) return;
  const base::Status status = CallPlugin(finalize, ToHandle(this));
  if (!status.ok()) {
    NEREID_LOG(kError, "failed finalizing model instance: {}", status.ToString());
  }
}

base::Status PluginInstance::CheckReady() const {
  const auto ready = backend_model_.library().entry_points().instance_ready;
  if (ready == nullptr || !is_initialized_.load()) return {};
  return CallPlugin(ready, ToHandle(const_cast<PluginInstance*>(this)));
}

bool PluginInstance::runs_on_any_thread() const {
  return backend_model_.library().runs_on_any_thread();
}

bool PluginInstance::begins_on_any_thread() const {
  return backend_model_.library().entry_points().begin != nullptr;
}

base::Status PluginInstance::Take(std::span<core::RequestPtr> batch) {
  handles_.clear();
  counts_batch_ = false;
  base::Status status;
  for (core::RequestPtr& taken : batch) {
    core::Request* const request = taken.release();
    request->clears_outputs = clears_outputs_;
    counts_batch_ = counts_batch_ || request->is_counted;
    for (core::RequestInput& input : request->inputs) input.owner = request;
    if (request->has_gpu_inputs && uses_host_tensors_ && status.ok()) [[unlikely]] {
      status = core::BringInputsToHost(*request, backend_model_.library().gpus());
    }
    handles_.push_back(ToHandle(request));
  }
  return status;
}

void PluginInstance::Execute(std::span<core::RequestPtr> batch) {
  base::Status status = Take(batch);
  const core::ReleaseScope scope(released_);
  // After a success, all requests may already be released.
  if (status.ok()) [[likely]] {
    const core::ExecutionMark::Call call(mark_, marked_requests(), handles_.size());
    status = CallPlugin(backend_model_.library().entry_points().execute, ToHandle(this),
                        handles_.data(), static_cast<uint32_t>(handles_.size()));
  }
  if (!status.ok()) [[unlikely]]
    FailBatch(scope, status);
}

bool PluginInstance::Begin(std::span<core::RequestPtr> batch, std::chrono::nanoseconds patience) {
  base::Status status = Take(batch);
  const core::ReleaseScope scope(released_);
  bool is_over = true;
  if (status.ok()) [[likely]] {
    mark_.Begin(marked_requests(), handles_.size());
    status = CallPlugin(backend_model_.library().entry_points().begin, ToHandle(this),
                        handles_.data(), static_cast<uint32_t>(handles_.size()),
                        static_cast<uint64_t>(patience.count()), &is_over);
  }
  if (status.ok() && !is_over) return false;
  if (mark_.heartbeat().is_working()) mark_.End();
  if (status.ok()) return true;
  FailBatch(scope, status);
  return true;
}

void PluginInstance::End() {
  const core::ReleaseScope scope(released_);
  mark_.Continue();
  backend_model_.library().entry_points().end(ToHandle(this));
  mark_.End();
}

void PluginInstance::FailBatch(const core::ReleaseScope& scope, const base::Status& error) {
  const uint64_t now = base::NowNs();
  if (memory::Gpus* const gpus = model_.gpus(); gpus != nullptr) gpus->LookForFailures();
  // Determined before the first request is released here.
  std::erase_if(handles_, [&scope](TRITONBACKEND_Request* handle) {
    return scope.Holds(FromHandle(handle));
  });
  for (TRITONBACKEND_Request* handle : handles_) {
    core::RequestPtr request(FromHandle(handle));
    if (request->is_counted && !request->is_padding) {
      model_.statistics().RecordFailure(core::FailureReason::kBackend,
                                        request->times.request_start_ns, now);
    }
    core::CompleteWithError(std::move(request), error);
  }
}

}  // namespace nereid::backend_host
