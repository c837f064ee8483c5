// SPDX-License-Identifier: Apache-2.0
#include "engine/life_cycle.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "base/log.h"

namespace nereid::engine {

LifeCycle::LifeCycle(const ModelLoader& loader, unsigned load_threads)
    : loader_(loader),
      load_threads_(std::max(load_threads, 1u)),
      table_(std::make_shared<const ModelTable>()) {}

LifeCycle::~LifeCycle() = default;

void LifeCycle::PublishLocked() { table_.Set(std::make_shared<const ModelTable>(records_)); }

void LifeCycle::SetVersion(const std::string& name, int64_t version, VersionRecord record) {
  base::MutexLock lock(mutex_);
  records_[name].versions[version] = std::move(record);
  PublishLocked();
}

void LifeCycle::SetModelFailure(const std::string& name, std::string reason) {
  NEREID_LOG(kError, "failed to load model '{}': {}", name, reason);
  base::MutexLock lock(mutex_);
  records_[name].reason = std::move(reason);
  PublishLocked();
}

void LifeCycle::LoadModel(const repository::ModelSource& source) {
  if (!source.config.ok()) {
    return SetModelFailure(source.name, std::string(source.config.status().message()));
  }
  const base::Result<std::set<int64_t>> versions = repository::VersionsToServe(source);
  if (!versions.ok()) {
    return SetModelFailure(source.name, std::string(versions.status().message()));
  }
  LoadVersions(source, *versions,
               [&](int64_t version) { return loader_.Load(source, version); });
}

void LifeCycle::LoadVersions(const repository::ModelSource& source,
                             const std::set<int64_t>& versions,
                             const std::function<base::Result<LoadedVersion>(int64_t)>& load) {
  bool is_any_ready = false;
  for (const int64_t version : versions) {
    is_any_ready |= LoadVersion(source, version, [&] { return load(version); });
  }
  if (source.files == nullptr) return;
  is_any_ready ? source.files->OnLoaded() : source.files->OnLoadFailed();
}

bool LifeCycle::LoadVersion(const repository::ModelSource& source, int64_t version,
                            const std::function<base::Result<LoadedVersion>()>& load) {
  NEREID_LOG(kInfo, "loading: {}:{}", source.name, version);
  SetVersion(source.name, version, {.state = VersionState::kLoading});
  base::Result<LoadedVersion> loaded = load();
  if (!loaded.ok()) {
    NEREID_LOG(kError, "failed to load '{}' version {}: {}", source.name, version,
               loaded.status().ToString());
    SetVersion(source.name, version,
               {.state = VersionState::kUnavailable, .reason = loaded.status().ToString()});
    return false;
  }
  std::shared_ptr<core::Model> model = loaded->model;
  {
    base::MutexLock lock(mutex_);
    loaded_[{source.name, version}] = std::make_unique<LoadedVersion>(std::move(*loaded));
  }
  SetVersion(source.name, version, {.state = VersionState::kReady, .model = std::move(model)});
  NEREID_LOG(kInfo, "successfully loaded '{}' version {}", source.name, version);
  return true;
}

void LifeCycle::LoadAll(const Sources& sources) {
  std::vector<const repository::ModelSource*> plain;
  for (const auto& [name, source] : sources) {
    if (!source.config.ok() || source.config->ensemble_scheduling() == nullptr) {
      plain.push_back(&source);
    }
  }
  LoadModels(plain);
  for (const EnsembleEntry& entry : OrderEnsembles(sources)) {
    LoadEnsemble(sources.at(entry.name), entry);
  }
}

void LifeCycle::LoadModels(const std::vector<const repository::ModelSource*>& waiting) {
  std::atomic<size_t> next{0};
  std::vector<base::Thread> threads;
  const size_t count = std::min<size_t>(load_threads_, waiting.size());
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back("load_" + std::to_string(i), [&] {
      for (size_t at = next++; at < waiting.size(); at = next++) LoadModel(*waiting[at]);
    });
  }
}

std::vector<std::unique_ptr<LoadedVersion>> LifeCycle::TakeAll() {
  std::vector<std::unique_ptr<LoadedVersion>> versions;
  base::MutexLock lock(mutex_);
  for (auto& [key, loaded] : loaded_) {
    // Steps of ensembles that are not through may still pin it.
    records_[key.name].versions[key.version] = {.state = VersionState::kUnloading,
                                                .model = loaded->model};
    versions.push_back(std::move(loaded));
  }
  loaded_.clear();
  PublishLocked();
  return versions;
}

size_t LifeCycle::WaitUntilClosed(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  while (closing_ > 0) {
    if (!drained_.WaitUntil(mutex_, deadline)) break;
  }
  return closing_;
}

void LifeCycle::StartClosing(core::Model& model) {
  {
    base::MutexLock lock(mutex_);
    ++closing_;
  }
  model.Close([this] {
    base::MutexLock lock(mutex_);
    --closing_;
    drained_.NotifyAll();
  });
}

size_t LifeCycle::UnloadAll(base::TimePoint deadline) {
  std::vector<std::unique_ptr<LoadedVersion>> versions = TakeAll();
  for (const auto& loaded : versions) {
    if (loaded->files != nullptr) loaded->files->OnUnloading();
  }
  // An ensemble needs what it contains until its last request has ended.
  std::ranges::stable_sort(versions, std::greater<>(),
                           [](const auto& loaded) { return loaded->ensemble_depth; });
  size_t left = 0;
  for (size_t i = 0; i < versions.size();) {
    const int depth = versions[i]->ensemble_depth;
    for (; i < versions.size() && versions[i]->ensemble_depth == depth; ++i) {
      StartClosing(*versions[i]->model);
    }
    left = WaitUntilClosed(deadline);
  }
  for (auto& loaded : versions) {
    const core::Model& model = *loaded->model;
    if (model.pin_count() > 0) {
      NEREID_LOG(kError, "Model '{}' (version {}) has {} in-flight inferences", model.name(),
                 model.version(), model.pin_count());
      // Its requests still refer to it: leaving it is the only safe end for a process that stops.
      static_cast<void>(loaded.release());
      continue;
    }
    const std::string name = model.name();
    const int64_t version = model.version();
    loaded.reset();
    NEREID_LOG(kInfo, "successfully unloaded '{}' version {}", name, version);
  }
  return left;
}

std::vector<LifeCycle::LoadTime> LifeCycle::LoadTimes() const {
  std::vector<LoadTime> times;
  base::MutexLock lock(mutex_);
  for (const auto& [key, loaded] : loaded_) {
    if (loaded->backend == nullptr) continue;  // loading an ensemble takes no time worth telling
    times.push_back(
        {key.name, key.version, std::chrono::duration<double>(loaded->load_duration).count()});
  }
  return times;
}

std::vector<std::shared_ptr<core::Model>> LifeCycle::LoadedModels() const {
  std::vector<std::shared_ptr<core::Model>> models;
  base::MutexLock lock(mutex_);
  for (const auto& [key, loaded] : loaded_) models.push_back(loaded->model);
  return models;
}

}  // namespace nereid::engine
