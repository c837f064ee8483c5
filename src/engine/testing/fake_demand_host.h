// SPDX-License-Identifier: Apache-2.0
// A place for models on demand in which loading takes no time, unless a test holds it, and memory
// is a sum.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "core/model.h"
#include "core/testing/fakes.h"
#include "engine/demand_host.h"

namespace nereid::engine {

// Thread-safe. Models are called as they were added, and have version 1.
class FakeDemandHost final : public DemandHost {
 public:
  void Add(const std::string& name, uint64_t bytes) {
    base::MutexLock lock(mutex_);
    bytes_[name] = bytes;
  }
  void Remove(const std::string& name) {
    base::MutexLock lock(mutex_);
    bytes_.erase(name);
  }
  // Makes loads of the model fail; with an empty reason, succeed again.
  void Fail(const std::string& name, const std::string& reason) {
    base::MutexLock lock(mutex_);
    failures_[name] = reason;
  }
  // Makes loads of the model wait until LetGo.
  void Hold(const std::string& name) {
    base::MutexLock lock(mutex_);
    held_.insert(name);
  }
  void LetGo(const std::string& name) {
    base::MutexLock lock(mutex_);
    held_.erase(name);
    changed_.NotifyAll();
  }
  void WaitUntilLoading(const std::string& name) {
    base::MutexLock lock(mutex_);
    while (loading_ != name) changed_.Wait(mutex_);
  }
  void WaitUntilUnloaded(const std::string& name) {
    base::MutexLock lock(mutex_);
    while (loaded_.contains(name)) changed_.Wait(mutex_);
  }
  void WaitUntilLoaded(size_t count) {
    base::MutexLock lock(mutex_);
    while (loaded_.size() != count) changed_.Wait(mutex_);
  }
  // Loads the model right after it was not found, as another thread might.
  void LoadAfterNextFind(const std::string& name) {
    base::MutexLock lock(mutex_);
    loads_after_find_ = name;
  }
  // Sets the parts of an ensemble.
  void SetParts(const std::string& name, std::set<std::string> parts) {
    base::MutexLock lock(mutex_);
    parts_[name] = std::move(parts);
  }

  std::vector<std::string> Loaded() const {
    base::MutexLock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, model] : loaded_) names.push_back(name);
    return names;
  }
  // How often the model was loaded, or was tried to.
  size_t LoadCount(const std::string& name) const {
    base::MutexLock lock(mutex_);
    const auto count = loads_.find(name);
    return count == loads_.end() ? 0 : count->second;
  }
  // The most memory that was ever in use.
  uint64_t peak() const {
    base::MutexLock lock(mutex_);
    return peak_;
  }
  // What must never happen, if it did.
  std::vector<std::string> faults() const {
    base::MutexLock lock(mutex_);
    return faults_;
  }

  std::optional<std::set<std::string>> ListModels() override {
    base::MutexLock lock(mutex_);
    std::set<std::string> names;
    for (const auto& [name, bytes] : bytes_) names.insert(name);
    return names;
  }
  base::Status Load(const std::string& name, const service::LoadOptions& /*options*/) override {
    base::MutexLock lock(mutex_);
    if (!loading_.empty()) faults_.push_back(name + " is loaded beside " + loading_);
    loading_ = name;
    ++loads_[name];
    changed_.NotifyAll();
    while (held_.contains(name)) changed_.Wait(mutex_);
    loading_.clear();
    if (const std::string& reason = failures_[name]; !reason.empty()) {
      return base::InvalidArgumentError(reason);
    }
    if (!bytes_.contains(name)) return base::InternalError("no such model");
    loaded_.try_emplace(name, core::MakeFakeModel(0, {1}));
    changed_.NotifyAll();
    peak_ = std::max(peak_, UsedLocked());
    return base::OkStatus();
  }
  base::Status Unload(const std::string& name, bool /*with_parts*/) override {
    base::MutexLock lock(mutex_);
    // Requests may still use it.
    if (const auto found = loaded_.find(name); found != loaded_.end()) {
      gone_.push_back(std::move(found->second));
      loaded_.erase(found);
    }
    changed_.NotifyAll();
    return base::OkStatus();
  }
  bool UnloadIdle(const std::string& name) override {
    base::MutexLock lock(mutex_);
    const auto found = loaded_.find(name);
    if (found == loaded_.end() || !found->second->TryHold()) return false;
    for (const auto& [ensemble, parts] : parts_) {
      if (loaded_.contains(ensemble) && parts.contains(name)) {
        faults_.push_back(name + " is unloaded under " + ensemble);
      }
    }
    gone_.push_back(std::move(found->second));
    loaded_.erase(found);
    changed_.NotifyAll();
    return true;
  }
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) override {
    base::MutexLock lock(mutex_);
    const auto found = loaded_.find(std::string(name));
    if (found == loaded_.end()) {
      if (loads_after_find_ == name)
        loaded_.try_emplace(loads_after_find_, core::MakeFakeModel(0, {1}));
      return base::NotFoundError("not loaded");
    }
    if (!version.empty() && version != "1") return base::NotFoundError("no such version");
    if (!found->second->TryPin()) return base::NotFoundError("held");
    return core::ModelHandle(*found->second);
  }
  ModelActivities Observe() override {
    base::MutexLock lock(mutex_);
    ModelActivities activities;
    for (const auto& [name, model] : loaded_) {
      activities[name].is_busy = model->pin_count() > 0;
      const auto parts = parts_.find(name);
      if (parts != parts_.end()) activities[name].parts = parts->second;
    }
    return activities;
  }
  std::vector<std::string> MemoryKinds() override { return {"CPU"}; }
  MemoryBytes MeasureMemory() override {
    base::MutexLock lock(mutex_);
    return {UsedLocked()};
  }

 private:
  uint64_t UsedLocked() const NEREID_REQUIRES(mutex_) {
    uint64_t used = 0;
    for (const auto& [name, model] : loaded_) used += bytes_.at(name);
    return used;
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, uint64_t> bytes_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, std::string> failures_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> parts_ NEREID_GUARDED_BY(mutex_);
  std::set<std::string> held_ NEREID_GUARDED_BY(mutex_);
  std::string loads_after_find_ NEREID_GUARDED_BY(mutex_);
  std::string loading_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<core::Model>> loaded_ NEREID_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<core::Model>> gone_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, size_t> loads_ NEREID_GUARDED_BY(mutex_);
  uint64_t peak_ NEREID_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> faults_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::engine
