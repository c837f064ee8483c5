// SPDX-License-Identifier: Apache-2.0
// A place for models on demand in which loading takes no time, unless a test holds it, and memory
// is a sum. Ensembles are loaded and unloaded with their parts as by the server.
#pragma once

#include <algorithm>
#include <functional>
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
#include "engine/testing/fakes.h"

namespace nereid::engine {

// Thread-safe. Models are called as they were added, and have version 1.
class FakeDemandHost final : public DemandHost {
 public:
  // Adds a model, or changes its files: the next load then replaces it.
  void Add(const std::string& name, uint64_t bytes) {
    base::MutexLock lock(mutex_);
    bytes_[name] = bytes;
    changed_files_.insert(name);
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
  // Both give up after a minute, which is a fault.
  void WaitUntilUnloaded(const std::string& name) {
    base::MutexLock lock(mutex_);
    while (loaded_.contains(name)) {
      if (!changed_.WaitUntil(mutex_, InAMinute()))
        return faults_.push_back(name + " stays loaded");
    }
  }
  void WaitUntilLoaded(size_t count) {
    base::MutexLock lock(mutex_);
    while (loaded_.size() != count) {
      if (changed_.WaitUntil(mutex_, InAMinute())) continue;
      return faults_.push_back(std::to_string(loaded_.size()) + " models stay loaded");
    }
  }
  // Sets a hook that runs before the memory is measured, without a lock.
  void SetMeasureHook(std::function<void()> hook) {
    base::MutexLock lock(mutex_);
    measure_hook_ = std::move(hook);
  }
  // Loads the model right after it was not found, as another thread might.
  void LoadAfterNextFind(const std::string& name) {
    base::MutexLock lock(mutex_);
    loads_after_find_ = name;
  }
  // Takes away the version of requests that name none, as a label of a missing version does.
  void RemoveDefault(const std::string& name) {
    base::MutexLock lock(mutex_);
    without_default_.insert(name);
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
  // The number of loaded models that no loaded ensemble needs.
  size_t LoadedForThemselves() const {
    base::MutexLock lock(mutex_);
    size_t count = 0;
    for (const auto& [name, version] : loaded_) count += EnsemblesOfLocked(name).empty() ? 1 : 0;
    return count;
  }
  // How often the model was loaded, or was tried to.
  size_t LoadCount(const std::string& name) const {
    base::MutexLock lock(mutex_);
    const auto count = loads_.find(name);
    return count == loads_.end() ? 0 : count->second;
  }
  // The memory in use.
  uint64_t used() const {
    base::MutexLock lock(mutex_);
    return UsedLocked();
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
  base::Status Load(const std::string& name, const service::LoadOptions& options) override {
    base::MutexLock lock(mutex_);
    if (!loading_.empty()) faults_.push_back(name + " is loaded beside " + loading_);
    loading_ = name;
    is_given_up_ = false;
    ++loads_[name];
    changed_.NotifyAll();
    while (held_.contains(name) && !is_given_up_) changed_.Wait(mutex_);
    loading_.clear();
    changed_.NotifyAll();
    if (is_given_up_) return base::InvalidArgumentError("the load was given up");
    wanted_.insert(name);
    const bool is_changed = changed_files_.contains(name);
    const base::Status status = LoadLocked(name);
    // As in the server, a configuration from a request stays until the files change.
    if (status.ok() && options.config) {
      overridden_.insert(name);
    } else if (status.ok() && is_changed) {
      overridden_.erase(name);
    }
    peak_ = std::max(peak_, UsedLocked());
    return status;
  }
  base::Status Unload(const std::string& name, bool with_parts) override {
    base::MutexLock lock(mutex_);
    // As in the server, a load in progress is given up first.
    if (loading_ == name || (!loading_.empty() && parts_[loading_].contains(name))) {
      is_given_up_ = true;
      changed_.NotifyAll();
    }
    while (is_given_up_ && !loading_.empty()) changed_.Wait(mutex_);
    // Requests may still use them.
    for (const std::string& one : with_parts ? UnloadedWithLocked(name) : std::set{name}) {
      TakeLocked(one);
    }
    return base::OkStatus();
  }
  bool UnloadIdle(const std::string& name) override {
    base::MutexLock lock(mutex_);
    if (!loaded_.contains(name)) return false;
    if (!EnsemblesOfLocked(name).empty())
      faults_.push_back(name + " is unloaded under an ensemble");
    const std::set<std::string> names = UnloadedWithLocked(name);
    for (const std::string& one : names) {
      if (loaded_.at(one).model->pin_count() > 0) return false;
    }
    // Pins are made under the lock.
    for (const std::string& one : names) static_cast<void>(loaded_.at(one).model->TryHold());
    for (const std::string& one : names) {
      TakeLocked(one);
      FreeLocked(one);
    }
    return true;
  }
  bool AwaitTeardown(const std::string& name) override {
    base::MutexLock lock(mutex_);
    bool is_free = FreeLocked(name);
    for (const std::string& part : parts_[name]) is_free = FreeLocked(part) && is_free;
    return is_free;
  }
  bool IsOverridden(const std::string& name) override {
    base::MutexLock lock(mutex_);
    return overridden_.contains(name);
  }
  std::set<std::string> PartsOf(const std::string& name) override {
    base::MutexLock lock(mutex_);
    return parts_[name];
  }
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) override {
    base::MutexLock lock(mutex_);
    return FindLocked(name, version);
  }
  core::ModelHandle FindAny(std::string_view name) override {
    base::MutexLock lock(mutex_);
    auto found = FindLocked(name, "1");
    return found.ok() ? *std::move(found) : core::ModelHandle();
  }
  ModelActivities Observe() override {
    base::MutexLock lock(mutex_);
    ModelActivities activities;
    for (const auto& [name, model] : loaded_) {
      activities[name].is_busy = model.model->pin_count() > 0;
      const auto parts = parts_.find(name);
      if (parts != parts_.end()) activities[name].parts = parts->second;
    }
    return activities;
  }
  std::vector<std::string> MemoryKinds() override { return {"CPU"}; }
  MemoryBytes MeasureMemory() override {
    std::function<void()> hook;
    {
      base::MutexLock lock(mutex_);
      hook = measure_hook_;
    }
    if (hook) hook();
    base::MutexLock lock(mutex_);
    return {UsedLocked()};
  }

 private:
  // A model that was loaded.
  struct Version {
    std::unique_ptr<core::Model> model;
    uint64_t bytes;
  };

  Version MakeLocked(const std::string& name) NEREID_REQUIRES(mutex_) {
    changed_files_.erase(name);
    return {.model = core::MakeFakeModel(0, {1}), .bytes = bytes_.at(name)};
  }
  base::Status LoadLocked(const std::string& name) NEREID_REQUIRES(mutex_) {
    if (const std::string& reason = failures_[name]; !reason.empty()) {
      return base::InvalidArgumentError(reason);
    }
    if (!bytes_.contains(name)) return base::InternalError("no such model");
    if (loaded_.contains(name) && !changed_files_.contains(name)) return base::OkStatus();
    // As in the server, what could be loaded stays if something else could not.
    base::Status status;
    for (const std::string& part : parts_[name]) {
      if (base::Status loaded = LoadLocked(part); !loaded.ok()) status = std::move(loaded);
    }
    if (!status.ok()) return status;
    if (const auto replaced = loaded_.find(name); replaced != loaded_.end()) {
      leaving_.emplace(name, std::move(replaced->second));
      loaded_.erase(replaced);
    }
    loaded_.try_emplace(name, MakeLocked(name));
    changed_.NotifyAll();
    return base::OkStatus();
  }
  // Returns the loaded ensembles that need the model.
  std::set<std::string> EnsemblesOfLocked(const std::string& name) const NEREID_REQUIRES(mutex_) {
    std::set<std::string> ensembles;
    for (const auto& [ensemble, parts] : parts_) {
      if (loaded_.contains(ensemble) && parts.contains(name)) ensembles.insert(ensemble);
    }
    return ensembles;
  }
  // Returns the loaded ones of the model and its parts that go with it.
  std::set<std::string> UnloadedWithLocked(const std::string& name) NEREID_REQUIRES(mutex_) {
    std::set<std::string> names;
    if (loaded_.contains(name)) names.insert(name);
    for (const std::string& part : parts_[name]) {
      if (!loaded_.contains(part) || wanted_.contains(part)) continue;
      if (EnsemblesOfLocked(part) == std::set{name}) names.insert(part);
    }
    return names;
  }
  // Takes a model out of service, and the ensembles that cannot be without it.
  void TakeLocked(const std::string& name) NEREID_REQUIRES(mutex_) {
    const auto found = loaded_.find(name);
    wanted_.erase(name);
    overridden_.erase(name);
    if (found == loaded_.end()) return;
    leaving_.emplace(name, std::move(found->second));
    loaded_.erase(found);
    changed_.NotifyAll();
    for (const std::string& ensemble : EnsemblesOfLocked(name)) TakeLocked(ensemble);
  }
  base::Result<core::ModelHandle> FindLocked(std::string_view name, std::string_view version)
      NEREID_REQUIRES(mutex_) {
    const auto found = loaded_.find(std::string(name));
    if (found == loaded_.end()) {
      if (loads_after_find_ == name)
        loaded_.try_emplace(loads_after_find_, MakeLocked(loads_after_find_));
      return base::NotFoundError("not loaded");
    }
    if (version.empty() && without_default_.contains(std::string(name))) {
      return base::UnavailableError("the label is not ready");
    }
    if (!version.empty() && version != "1") return base::NotFoundError("no such version");
    if (!found->second.model->TryPin()) return base::NotFoundError("held");
    return core::ModelHandle(*found->second.model);
  }
  // Frees the memory of versions without requests that are out of service. Returns whether none is
  // left.
  bool FreeLocked(const std::string& name) NEREID_REQUIRES(mutex_) {
    auto [version, end] = leaving_.equal_range(name);
    bool is_free = true;
    while (version != end) {
      const bool is_used = version->second.model->pin_count() > 0;
      is_free = is_free && !is_used;
      if (is_used) {
        ++version;
        continue;
      }
      gone_.push_back(std::move(version->second.model));
      version = leaving_.erase(version);
    }
    return is_free;
  }
  uint64_t UsedLocked() const NEREID_REQUIRES(mutex_) {
    uint64_t used = 0;
    for (const auto& [name, version] : loaded_) used += version.bytes;
    for (const auto& [name, version] : leaving_) used += version.bytes;
    return used;
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, uint64_t> bytes_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, std::string> failures_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> parts_ NEREID_GUARDED_BY(mutex_);
  std::set<std::string> changed_files_ NEREID_GUARDED_BY(mutex_);  // not loaded since
  std::set<std::string> held_ NEREID_GUARDED_BY(mutex_);
  std::set<std::string> wanted_ NEREID_GUARDED_BY(mutex_);      // loaded by name
  std::set<std::string> overridden_ NEREID_GUARDED_BY(mutex_);  // loaded with a configuration
  std::function<void()> measure_hook_ NEREID_GUARDED_BY(mutex_);
  std::set<std::string> without_default_ NEREID_GUARDED_BY(mutex_);
  std::string loads_after_find_ NEREID_GUARDED_BY(mutex_);
  std::string loading_ NEREID_GUARDED_BY(mutex_);
  bool is_given_up_ NEREID_GUARDED_BY(mutex_) = false;  // the load in progress
  std::map<std::string, Version> loaded_ NEREID_GUARDED_BY(mutex_);
  std::multimap<std::string, Version> leaving_ NEREID_GUARDED_BY(mutex_);  // not free yet
  // Whoever has dropped the last pin may not be done with that.
  std::vector<std::unique_ptr<core::Model>> gone_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, size_t> loads_ NEREID_GUARDED_BY(mutex_);
  uint64_t peak_ NEREID_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> faults_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::engine
