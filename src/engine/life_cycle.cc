// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/model_repository_manager/model_lifecycle.cc of Triton.
#include "engine/life_cycle.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "repository/advice.h"

namespace nereid::engine {
namespace {

// Backends may take their time to end a model; a few that do must not hold up the others.
constexpr size_t kUnloadThreads = 4;
// In the place of a version: what failed concerns the whole model.
constexpr int64_t kNoVersion = -1;

// The lesser of the two changes.
config::ConfigChange Lesser(config::ConfigChange a, config::ConfigChange b) {
  return static_cast<int>(a) < static_cast<int>(b) ? a : b;
}

}  // namespace

LifeCycle::LifeCycle(const ModelLoader& loader, LifeCycleOptions options)
    : loader_(loader),
      options_(options),
      table_(std::make_shared<const ModelTable>()),
      unload_pool_("unload", kUnloadThreads),
      load_pool_("load", options.load_threads) {
  if (options.has_namespaces) named_.emplace();
}

LifeCycle::~LifeCycle() {
  base::MutexLock lock(gate_->mutex);
  gate_->is_open = false;
}

void LifeCycle::PublishLocked(const std::set<ModelId>& changed) {
  ModelRecords records;
  for (const ModelId& id : changed) {
    if (const auto record = records_.find(id); record != records_.end()) records.insert(*record);
  }
  table_.Set(std::make_shared<const ModelTable>(*table_.Share(), records, named_));
}

void LifeCycle::SetNamed(std::set<ModelId> ids) {
  base::MutexLock lock(mutex_);
  if (!named_ || *named_ == ids) return;
  named_ = std::move(ids);
  PublishLocked({});
}

// A thread may have read its table just before a newer one replaced a version: it then finds the
// version closed, and must look again.
base::Result<core::ModelHandle> LifeCycle::Find(std::string_view name,
                                                std::string_view version) const {
  while (true) {
    const ModelTable* const table = &Table();
    base::Result<core::ModelHandle> model = table->Find(name, version);
    if (model.ok() || &Table() == table) return model;
  }
}

base::Result<core::ModelHandle> LifeCycle::FindForStep(std::string_view id_text,
                                                       int64_t version) const {
  while (true) {
    const ModelTable* const table = &Table();
    base::Result<core::ModelHandle> model = table->FindForStep(id_text, version);
    if (model.ok() || &Table() == table) return model;
  }
}

std::shared_ptr<core::Model> LifeCycle::LoadedModel(const ModelId& id, int64_t version) const {
  base::MutexLock lock(mutex_);
  std::shared_ptr<core::Model> model;
  for (auto it = loaded_.lower_bound({id, 0}); it != loaded_.end() && it->first.id == id; ++it) {
    if (version < 0 || it->first.version == version) model = it->second->model;
  }
  return model;
}

std::vector<base::Status> LifeCycle::Load(std::vector<LoadJob> jobs) {
  std::vector<std::unique_ptr<Attempt>> loads;
  std::set<ModelId> ids;
  for (LoadJob& job : jobs) {
    loads.push_back(std::make_unique<Attempt>());
    Attempt& load = *loads.back();
    load.job = std::move(job);
    load.id = load.job.source->id();
    ids.insert(load.id);
    load.status = Begin(load);
    if (load.status.ok()) continue;
    load.is_done = true;
    bool is_new = true;
    {
      base::MutexLock lock(mutex_);
      is_new = NoteFailureLocked(load, kNoVersion, std::string(load.status.message()));
    }
    if (!is_new) continue;
    NEREID_LOG(kError, "failed to load model '{}': {}", load.id.Text(), load.status.message());
  }
  Versions retired;
  {
    base::MutexLock lock(mutex_);
    for (const auto& load : loads) {
      if (!load->is_done && load->loading.empty()) FinishLocked(*load, retired);
      if (load->is_done) continue;
      loads_.insert(load.get());
      if (is_stopping_) load->is_cancelled.store(true);
    }
    PublishLocked(ids);
  }
  Retire(std::move(retired), true);
  for (const auto& load : loads) {
    for (const int64_t version : load->loading) {
      load_pool_.Post([this, &load = *load, version] { LoadVersion(load, version); });
    }
  }
  std::vector<base::Status> results;
  base::MutexLock lock(mutex_);
  for (const auto& load : loads) {
    while (!load->is_done) changed_.Wait(mutex_);
    loads_.erase(load.get());
    results.push_back(std::move(load->status));
  }
  return results;
}

base::Status LifeCycle::Begin(Attempt& load) {
  base::Result<std::set<int64_t>> versions = repository::VersionsToServe(*load.job.source);
  base::MutexLock lock(mutex_);
  ModelRecord& record = records_[load.id];
  NEREID_RETURN_IF_ERROR(versions.status());
  load.wanted = *std::move(versions);
  for (const int64_t version : load.wanted) {
    const config::ConfigChange change = ChangeOf(load, version);
    if (change == config::ConfigChange::kNothing) continue;
    load.loading.insert(version);
    const auto failure = failures_.find({load.id, version});
    if (options_.repeats_loads && failure != failures_.end() &&
        failure->second.file_time_ns == load.job.source->timestamp.Latest()) {
      load.repeating.insert(version);
      NEREID_VLOG(1, "loading again: {}:{}", load.id.Text(), version);
    } else {
      NEREID_LOG(kInfo, "loading: {}:{}", load.id.Text(), version);
    }
    if (change == config::ConfigChange::kInstances) load.changing.insert(version);
    VersionRecord& entry = record.versions[version];
    if (entry.state != VersionState::kReady) entry = {.state = VersionState::kLoading};
  }
  return base::OkStatus();
}

config::ConfigChange LifeCycle::ChangeOf(const Attempt& load, int64_t version) const {
  using enum config::ConfigChange;
  const auto found = loaded_.find({load.id, version});
  if (found == loaded_.end() || load.job.ensemble_depth > 0) return kReload;
  const LoadedVersion& loaded = *found->second;
  const repository::ModelSource& before = *loaded.source;
  const repository::ModelSource& now = *load.job.source;
  const bool has_same_files = !now.repository.empty() && before.repository == now.repository &&
                              !before.timestamp.VersionIsOlderThan(now.timestamp, version) &&
                              before.config_provided == now.config_provided;
  if (!has_same_files) return kReload;
  const config::ConfigChange change = config::CompareConfigs(*before.config, *now.config);
  if (change != kReload || loaded.instances == nullptr) return change;
  // Clients send back what they were told, which the backend has completed. Whether the batch size
  // is given says nothing then: over HTTP it is always there, over gRPC never when it is 0.
  config::ModelConfig told = *ConfigOfLocked(loaded);
  told.gives_max_batch_size = now.config->gives_max_batch_size;
  return Lesser(change, config::CompareConfigs(told, *now.config));
}

std::shared_ptr<const config::ModelConfig> LifeCycle::ConfigOfLocked(const LoadedVersion& loaded) {
  return loaded.changed_config != nullptr ? loaded.changed_config : loaded.model->shared_config();
}

std::shared_ptr<const config::ModelConfig> LifeCycle::ConfigOf(const core::Model& model) const {
  base::MutexLock lock(mutex_);
  for (const auto& [key, loaded] : loaded_) {
    if (loaded->model.get() == &model) return ConfigOfLocked(*loaded);
  }
  return model.shared_config();
}

base::Status LifeCycle::ChangeInstances(Attempt& load, int64_t version) {
  LoadedVersion* loaded = nullptr;
  core::ModelHandle pin;  // it stays while this is at it
  {
    base::MutexLock lock(mutex_);
    const auto found = loaded_.find({load.id, version});
    if (found != loaded_.end() && found->second->model->TryPin()) {
      loaded = found->second.get();
      pin = core::ModelHandle(*loaded->model);
    }
  }
  if (loaded == nullptr) return base::UnavailableError("Server exiting");
  NEREID_RETURN_IF_ERROR(CheckWanted(load));
  base::Result<std::shared_ptr<const config::ModelConfig>> changed =
      loader_.ChangeInstances(*loaded, *load.job.source, [&load] { return CheckWanted(load); });
  NEREID_RETURN_IF_ERROR(changed.status());
  base::MutexLock lock(mutex_);
  loaded->changed_config = *std::move(changed);
  loaded->source = load.job.source;
  return base::OkStatus();
}

base::Status LifeCycle::CheckWanted(const Attempt& load) {
  if (!load.is_cancelled.load(std::memory_order_relaxed)) return base::OkStatus();
  return base::Status(base::StatusCode::kCancelled,
                      "the load was given up, because the model was unloaded meanwhile or the "
                      "server stops");
}

base::Result<LoadedVersion> LifeCycle::MakeVersion(const Attempt& load, int64_t version) const {
  const LoadJob& job = load.job;
  for (unsigned retries = options_.load_retries;; --retries) {
    NEREID_RETURN_IF_ERROR(CheckWanted(load));
    base::Result<LoadedVersion> made =
        job.ensemble_depth == 0
            ? loader_.Load(*job.source, version, [&load] { return CheckWanted(load); })
            : loader_.LoadEnsemble(*job.source, version, job.parts);
    if (made.ok()) return made;
    const base::Status why(made.status().code(), repository::WithAdvice(made.status().message(),
                                                                        job.source->config_advice));
    if (retries == 0) return why;
    NEREID_LOG(kError, "failed to load '{}' version {}: {}", job.source->id().Text(), version,
               why.ToString());
  }
}

bool LifeCycle::NoteFailureLocked(const Attempt& load, int64_t version, const std::string& reason) {
  Failure now{.file_time_ns = load.job.source->timestamp.Latest(), .reason = reason};
  Failure& before = failures_[{load.id, version}];
  const bool is_new = !options_.repeats_loads || before.file_time_ns != now.file_time_ns ||
                      before.reason != now.reason;
  before = std::move(now);
  return is_new;
}

void LifeCycle::TellFailure(const Attempt& load, int64_t version, const base::Status& status) {
  {
    base::MutexLock lock(mutex_);
    if (!NoteFailureLocked(load, version, status.ToString())) return;
  }
  NEREID_LOG(kError, "failed to {} '{}' version {}: {}",
             load.changing.contains(version) ? "change the instances of" : "load", load.id.Text(),
             version, status.ToString());
}

void LifeCycle::LoadVersion(Attempt& load, int64_t version) {
  const bool is_change = load.changing.contains(version);
  std::optional<LoadedVersion> made;
  base::Status status;
  if (is_change) {
    status = ChangeInstances(load, version);
  } else if (base::Result<LoadedVersion> result = MakeVersion(load, version); result.ok()) {
    made.emplace(*std::move(result));
  } else {
    status = result.status();
  }
  Versions retired;
  if (!status.ok()) TellFailure(load, version, status);
  {
    base::MutexLock lock(mutex_);
    if (status.ok()) failures_.erase({load.id, version});
    if (status.ok() && is_change) {
      ++load.changed;
    } else if (status.ok()) {
      auto loaded = std::make_unique<LoadedVersion>(*std::move(made));
      loaded->ensemble_depth = load.job.ensemble_depth;
      loaded->source = load.job.source;
      load.loaded[version] = std::move(loaded);
    } else {
      load.failed[version] = status.ToString();
    }
    if (load.loaded.size() + load.failed.size() + load.changed < load.loading.size()) return;
    FinishLocked(load, retired);
    PublishLocked({load.id});
  }
  const bool is_loaded = load.failed.empty();
  // Agents hear of the end of what is replaced before they hear that the new is there, as in
  // Triton.
  Retire(std::move(retired), is_loaded);
  if (const auto& files = load.job.source->files; files != nullptr) {
    is_loaded ? files->OnLoaded() : files->OnLoadFailed();
  }
  // The load itself is gone as soon as its maker sees that it is done.
  base::MutexLock lock(mutex_);
  load.is_done = true;
  changed_.NotifyAll();
}

void LifeCycle::FinishLocked(Attempt& load, Versions& retired) {
  if (is_stopping_) {
    for (const int64_t version : load.loading) {
      load.failed.try_emplace(version, "Server exiting");
    }
  }
  if (load.failed.empty()) {
    CommitLocked(load, retired);
    NEREID_LOG(kInfo, "successfully loaded '{}'", load.id.Text());
  } else {
    RollBackLocked(load, retired);
    if (load.repeating != load.loading) NEREID_LOG(kInfo, "failed to load '{}'", load.id.Text());
  }
  if (load.loading.empty()) load.is_done = true;
}

void LifeCycle::CommitLocked(Attempt& load, Versions& retired) {
  ModelRecord& record = records_[load.id];
  std::vector<int64_t> unwanted;
  for (const auto& [version, entry] : record.versions) {
    if (!load.wanted.contains(version)) unwanted.push_back(version);
  }
  for (const int64_t version : unwanted) {
    TakeLocked(load.id, version, retired);
    // A version that failed once is nobody's trouble when it is not wanted any more.
    VersionRecord& entry = record.versions[version];
    if (entry.state == VersionState::kUnavailable) entry.reason = kUnloadedReason;
  }
  for (auto& [version, loaded] : load.loaded) {
    record.versions[version] = {
        .state = VersionState::kReady, .reason = {}, .model = loaded->model};
    std::unique_ptr<LoadedVersion>& place = loaded_[{load.id, version}];
    if (place != nullptr) retired.push_back(std::move(place));
    place = std::move(loaded);
  }
}

void LifeCycle::RollBackLocked(Attempt& load, Versions& retired) {
  ModelRecord& record = records_[load.id];
  std::string text;
  for (const auto& [version, reason] : load.failed) {
    text += fmt::format("version {} is at UNAVAILABLE state: {};", version, reason);
    VersionRecord& entry = record.versions[version];
    if (entry.state == VersionState::kLoading) {
      entry = {.state = VersionState::kUnavailable, .reason = reason, .model = {}};
    }
  }
  for (auto& [version, loaded] : load.loaded) {
    VersionRecord& entry = record.versions[version];
    if (entry.state == VersionState::kLoading) {
      entry = {.state = VersionState::kUnloading, .reason = {}, .model = loaded->model};
    }
    retired.push_back(std::move(loaded));
  }
  load.status = base::InvalidArgumentError(std::move(text));
}

void LifeCycle::TakeLocked(const ModelId& id, int64_t version, Versions& retired) {
  const auto found = loaded_.find({id, version});
  if (found == loaded_.end()) return;
  // Steps of ensembles that are not through may still pin it.
  records_[id].versions[version] = {
      .state = VersionState::kUnloading, .reason = {}, .model = found->second->model};
  retired.push_back(std::move(found->second));
  loaded_.erase(found);
}

void LifeCycle::Unload(const std::set<ModelId>& ids) {
  Versions retired;
  {
    base::MutexLock lock(mutex_);
    for (const ModelId& id : ids) {
      const auto record = records_.find(id);
      if (record == records_.end()) continue;
      std::vector<int64_t> versions;
      for (auto& [version, entry] : record->second.versions) {
        versions.push_back(version);
        if (entry.state == VersionState::kUnavailable) entry.reason = kUnloadedReason;
      }
      for (const int64_t version : versions) {
        TakeLocked(id, version, retired);
        failures_.erase({id, version});
      }
      failures_.erase({id, kNoVersion});
    }
    PublishLocked(ids);
  }
  Retire(std::move(retired), true);
}

void LifeCycle::Retire(Versions versions, bool were_ready) {
  if (versions.empty()) return;
  std::map<int, Versions> by_depth;
  auto retirement = std::make_shared<Retirement>();
  std::set<std::shared_ptr<repository::ModelFiles>> files;
  {
    base::MutexLock lock(mutex_);
    for (const auto& version : versions) {
      retiring_.insert(version.get());
      if (!were_ready) continue;
      // Two where its instances were changed: what it was loaded from, and what they are from.
      for (const auto& some : {version->files, version->source->files}) {
        if (some != nullptr) files.insert(some);
      }
    }
    if (!files.empty()) {
      for (const auto& [key, loaded] : loaded_) {
        files.erase(loaded->files);
        files.erase(loaded->source->files);
      }
    }
  }
  for (const auto& some : files) some->OnUnloading();
  for (auto& version : versions) by_depth[version->ensemble_depth].push_back(std::move(version));
  for (auto& [depth, level] : by_depth) retirement->levels.push_back(std::move(level));
  RetireNext(retirement);
}

void LifeCycle::RetireNext(const std::shared_ptr<Retirement>& retirement) {
  Versions level;
  {
    base::MutexLock lock(mutex_);
    if (retirement->levels.empty()) return;
    level = std::move(retirement->levels.back());
    retirement->levels.pop_back();
    retirement->open = level.size();
  }
  for (auto& version : level) {
    // Nobody owns it until its last request has ended, which a process that stops may not live to
    // see.
    LoadedVersion* const closing = version.release();
    closing->model->Close([this, gate = gate_, retirement, closing] {
      base::MutexLock lock(gate->mutex);
      if (gate->is_open) OnDrained(retirement, closing);
    });
  }
}

// Runs on whatever thread ended the request: only hands the work on.
void LifeCycle::OnDrained(const std::shared_ptr<Retirement>& retirement, LoadedVersion* version) {
  bool is_last = false;
  {
    base::MutexLock lock(mutex_);
    retiring_.erase(version);
    destroying_.insert(version->model.get());
    is_last = --retirement->open == 0;
  }
  unload_pool_.Post([this, retirement, version, is_last] {
    if (is_last) RetireNext(retirement);
    Destroy(std::unique_ptr<LoadedVersion>(version));
  });
}

void LifeCycle::Destroy(std::unique_ptr<LoadedVersion> version) {
  const ModelId id = version->source->id();
  const std::shared_ptr<core::Model> model = version->model;
  version.reset();
  NEREID_LOG(kInfo, "successfully unloaded '{}' version {}", id.Text(), model->version());
  base::MutexLock lock(mutex_);
  auto& versions = records_[id].versions;
  const auto entry = versions.find(model->version());
  if (entry != versions.end() && entry->second.model == model) {
    entry->second = {
        .state = VersionState::kUnavailable, .reason = std::string(kUnloadedReason), .model = {}};
    PublishLocked({id});
  }
  destroying_.erase(model.get());
  changed_.NotifyAll();
}

void LifeCycle::CancelLoads(std::string_view name) {
  base::MutexLock lock(mutex_);
  for (Attempt* const load : loads_) {
    if (load->id.name == name) load->is_cancelled.store(true);
  }
}

void LifeCycle::CancelAllLoads() {
  base::MutexLock lock(mutex_);
  is_stopping_ = true;
  for (Attempt* const load : loads_) load->is_cancelled.store(true);
}

Unfinished LifeCycle::UnloadAll(base::TimePoint deadline) {
  std::set<ModelId> ids;
  {
    base::MutexLock lock(mutex_);
    is_stopping_ = true;
    for (const auto& [key, version] : loaded_) ids.insert(key.id);
  }
  Unload(ids);
  base::MutexLock lock(mutex_);
  const auto is_over = [this]() NEREID_REQUIRES(mutex_) {
    return retiring_.empty() && destroying_.empty() && loads_.empty();
  };
  while (!is_over() && changed_.WaitUntil(mutex_, deadline)) {
  }
  Unfinished left;
  for (const LoadedVersion* version : retiring_) {
    const core::Model& model = *version->model;
    if (model.pin_count() == 0) continue;  // waits for an ensemble that contains it
    ++left.busy_versions;
    left.work.push_back(fmt::format("Model '{}' (version {}) has {} in-flight inferences",
                                    model.name(), model.version(), model.pin_count()));
  }
  for (const core::Model* model : destroying_) {
    left.work.push_back(
        fmt::format("Model '{}' (version {}) is being unloaded", model->name(), model->version()));
  }
  for (const Attempt* load : loads_) {
    left.work.push_back(fmt::format("Model '{}' is being loaded", load->id.Text()));
  }
  return left;
}

std::vector<LifeCycle::Loaded> LifeCycle::LoadedModels() const {
  std::vector<Loaded> models;
  base::MutexLock lock(mutex_);
  for (const auto& [key, loaded] : loaded_) {
    const bool has_time = loaded->backend != nullptr;
    models.push_back({key.id, loaded->model,
                      has_time ? std::chrono::duration<double>(loaded->load_duration).count() : 0});
  }
  return models;
}

}  // namespace nereid::engine
