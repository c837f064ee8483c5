// SPDX-License-Identifier: Apache-2.0
// Log texts follow Triton's core/src/model_repository_manager/model_lifecycle.cc.
#include "engine/teardown.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"

namespace nereid::engine {
namespace {

using repository::ModelId;

// Backends may be slow to unload a model; a few slow ones must not delay the others.
constexpr size_t kThreads = 4;

std::string Describe(const core::Model& model) {
  return fmt::format("Model '{}' (version {})", model.name(), model.version());
}

}  // namespace

Teardown::Teardown(OnGone on_gone) : on_gone_(std::move(on_gone)), pool_("unload", kThreads) {}

Teardown::~Teardown() {
  base::MutexLock lock(gate_->mutex);
  gate_->is_open = false;
}

void Teardown::Expect(const LoadedVersions& versions) {
  base::MutexLock lock(mutex_);
  expected_ += versions.size();
  for (const auto& version : versions) {
    ++left_[version->id];
    for (const ModelId& id : version->steps) ++needed_[id];
  }
}

void Teardown::Add(LoadedVersions versions) {
  if (versions.empty()) return;
  {
    base::MutexLock lock(mutex_);
    expected_ -= versions.size();
    for (auto& version : versions) waiting_.push_back(std::move(version));
  }
  CloseFree();
}

std::vector<LoadedVersion*> Teardown::TakeFreeLocked() {
  std::vector<LoadedVersion*> free;
  LoadedVersions still_needed;
  for (auto& version : waiting_) {
    if (version->serves_steps && needed_.contains(version->id)) {
      still_needed.push_back(std::move(version));
    } else {
      closed_.insert(version.get());
      free.push_back(version.release());
    }
  }
  waiting_ = std::move(still_needed);
  return free;
}

void Teardown::CloseFree() {
  std::vector<LoadedVersion*> free;
  {
    base::MutexLock lock(mutex_);
    free = TakeFreeLocked();
  }
  for (LoadedVersion* const version : free) {
    version->model()->Close([this, gate = gate_, version] {
      base::MutexLock lock(gate->mutex);
      if (gate->is_open) OnDrained(version);
    });
  }
}

// Runs on the thread that ended the last request, so it only posts the work.
void Teardown::OnDrained(LoadedVersion* version) {
  {
    base::MutexLock lock(mutex_);
    closed_.erase(version);
    destroying_.insert(version->model().get());
    for (const ModelId& id : version->steps) {
      const auto count = needed_.find(id);
      if (--count->second == 0) needed_.erase(count);
    }
  }
  pool_.Post([this, version, frees_parts = !version->steps.empty()] {
    if (frees_parts) CloseFree();
    Destroy(std::unique_ptr<LoadedVersion>(version));
  });
}

void Teardown::Destroy(std::unique_ptr<LoadedVersion> version) {
  const ModelId id = version->id;
  const std::shared_ptr<core::Model> model = version->model();
  version.reset();
  NEREID_LOG(kInfo, "successfully unloaded '{}' version {}", id.Text(), model->version());
  on_gone_(id, *model);
  base::MutexLock lock(mutex_);
  destroying_.erase(model.get());
  if (const auto left = left_.find(id); --left->second == 0) left_.erase(left);
  changed_.NotifyAll();
}

bool Teardown::AreNeeded(const std::set<ModelId>& ids) {
  base::MutexLock lock(mutex_);
  return std::ranges::any_of(
      ids, [this](const ModelId& id) NEREID_REQUIRES(mutex_) { return needed_.contains(id); });
}

bool Teardown::WaitUntilGone(const std::set<ModelId>& ids, base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  const auto are_gone = [&]() NEREID_REQUIRES(mutex_) {
    for (const ModelId& id : ids) {
      if (left_.contains(id)) return false;
    }
    return true;
  };
  while (!are_gone() && changed_.WaitUntil(mutex_, deadline)) {
  }
  return are_gone();
}

Unfinished Teardown::Wait(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  const auto is_over = [this]() NEREID_REQUIRES(mutex_) {
    return expected_ == 0 && waiting_.empty() && closed_.empty() && destroying_.empty();
  };
  while (!is_over() && changed_.WaitUntil(mutex_, deadline)) {
  }
  Unfinished left;
  const auto add_busy = [&left](const LoadedVersion& version) {
    const core::Model& model = *version.model();
    if (model.pin_count() == 0) return;  // waits for an ensemble that contains it
    ++left.busy_versions;
    left.work.push_back(
        fmt::format("{} has {} in-flight inferences", Describe(model), model.pin_count()));
  };
  for (const LoadedVersion* version : closed_) add_busy(*version);
  for (const auto& version : waiting_) add_busy(*version);
  for (const core::Model* model : destroying_) {
    left.work.push_back(fmt::format("{} is being unloaded", Describe(*model)));
  }
  return left;
}

}  // namespace nereid::engine
