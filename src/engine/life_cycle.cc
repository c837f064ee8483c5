// SPDX-License-Identifier: Apache-2.0
// Log texts follow Triton's core/src/model_repository_manager/model_lifecycle.cc.
#include "engine/life_cycle.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "engine/traffic_check.h"

namespace nereid::engine {
namespace {

// Retries a look-up if the table changed. A thread may have read its table just before a newer one
// replaced a version, and would then find that version closed.
template <typename Find>
base::Result<core::ModelHandle> FindInCurrent(const Published<ModelTable>& tables, Find find) {
  while (true) {
    const ModelTable* const table = &tables.Read();
    base::Result<core::ModelHandle> model = find(*table);
    if (model.ok() || &tables.Read() == table) return model;
  }
}

// Orders versions so that ensembles come before the models of their steps.
std::vector<LoadedVersion*> OuterFirst(std::vector<LoadedVersion*> versions) {
  std::vector<LoadedVersion*> ordered;
  while (!versions.empty()) {
    std::set<ModelId> needed;
    for (const LoadedVersion* version : versions) {
      needed.insert(version->steps.begin(), version->steps.end());
    }
    const auto inner = std::ranges::partition(
        versions, [&](const LoadedVersion* version) { return !needed.contains(version->id); });
    // Versions that were loaded at different times may have been made for each other in a circle.
    const auto end = inner.begin() == versions.begin() ? versions.end() : inner.begin();
    ordered.insert(ordered.end(), versions.begin(), end);
    versions.erase(versions.begin(), end);
  }
  return ordered;
}

// Returns the one of `versions` that is `model`; null if there is none.
const LoadedVersion* FindVersion(
    const std::map<VersionKey, std::unique_ptr<LoadedVersion>>& versions,
    const core::Model& model) {
  const auto found = std::ranges::find_if(
      versions, [&](const auto& entry) { return entry.second->model().get() == &model; });
  return found == versions.end() ? nullptr : found->second.get();
}

// Closes all of `versions`, in this order, to requests if none has requests or sequences; otherwise
// changes nothing and returns false.
bool HoldAllIfIdle(const std::vector<LoadedVersion*>& versions) {
  std::vector<core::Model*> held;
  bool is_idle = true;
  for (const LoadedVersion* version : versions) {
    core::Model& model = *version->model();
    is_idle = model.TryHold();
    if (!is_idle) break;
    held.push_back(&model);
    // Asked when no request can begin a sequence any more.
    is_idle = model.scheduler().SequenceCount() == 0;
    if (!is_idle) break;
  }
  if (is_idle) return true;
  for (core::Model* const model : held) model->EndHold();
  return false;
}

}  // namespace

LifeCycle::LifeCycle(const ModelFactory& factory, LifeCycleOptions options)
    : factory_(factory),
      options_(options),
      table_(std::make_shared<const ModelTable>()),
      states_(options.has_namespaces),
      teardown_([this](const ModelId& id, const core::Model& model) { OnGone(id, model); }),
      load_pool_("load", options.load_threads) {}

// --- Reading ---

base::Result<core::ModelHandle> LifeCycle::Find(std::string_view name,
                                                std::string_view version) const {
  return FindInCurrent(table_, [&](const ModelTable& table) { return table.Find(name, version); });
}

core::ModelHandle LifeCycle::FindAny(std::string_view name) const {
  if (auto found = Find(name, {}); found.ok()) return *std::move(found);
  for (const int64_t version : Table().ReadyVersions(name)) {
    if (auto found = Find(name, std::to_string(version)); found.ok()) return *std::move(found);
  }
  return {};
}

base::Result<core::ModelHandle> LifeCycle::FindForStep(std::string_view id_text,
                                                       int64_t version) const {
  return FindInCurrent(
      table_, [&](const ModelTable& table) { return table.FindForStep(id_text, version); });
}

std::shared_ptr<core::Model> LifeCycle::LoadedModel(const ModelId& id, int64_t version) const {
  base::MutexLock lock(mutex_);
  std::shared_ptr<core::Model> model;
  for (auto it = loaded_.lower_bound({id, 0}); it != loaded_.end() && it->first.id == id; ++it) {
    if (version < 0 || it->first.version == version) model = it->second->model();
  }
  return model;
}

bool LifeCycle::HasSameParts(const LoadJob& job) const {
  const ModelId id = job.source->id();
  bool is_loaded = false;
  base::MutexLock lock(mutex_);
  for (auto it = loaded_.lower_bound({id, 0}); it != loaded_.end() && it->first.id == id; ++it) {
    if (!it->second->IsMadeOf(job.parts)) return false;
    is_loaded = true;
  }
  return is_loaded;
}

std::shared_ptr<const config::ModelConfig> LifeCycle::ConfigOf(const core::Model& model) const {
  base::MutexLock lock(mutex_);
  const LoadedVersion* const loaded = FindVersion(loaded_, model);
  return loaded == nullptr ? model.shared_config() : loaded->CurrentConfig();
}

std::shared_ptr<const repository::ModelSource> LifeCycle::SourceOf(const core::Model& model) const {
  base::MutexLock lock(mutex_);
  const LoadedVersion* const loaded = FindVersion(loaded_, model);
  return loaded == nullptr ? nullptr : loaded->source;
}

std::vector<std::shared_ptr<core::Model>> LifeCycle::Models() const {
  std::vector<std::shared_ptr<core::Model>> models;
  base::MutexLock lock(mutex_);
  models.reserve(loaded_.size());
  for (const auto& [key, loaded] : loaded_) models.push_back(loaded->model());
  return models;
}

std::vector<LifeCycle::Loaded> LifeCycle::LoadedModels() const {
  std::vector<Loaded> models;
  base::MutexLock lock(mutex_);
  for (const auto& [key, loaded] : loaded_) {
    const std::chrono::duration<double> load_time = loaded->servable->load_duration();
    models.push_back({key.id, loaded->model(), load_time.count()});
  }
  return models;
}

// --- Publishing ---

void LifeCycle::PublishLocked(const std::set<ModelId>& changed) {
  table_.Set(states_.MakeTable(*table_.Share(), changed));
}

void LifeCycle::SetNamed(std::set<ModelId> ids) {
  base::MutexLock lock(mutex_);
  if (states_.SetNamed(std::move(ids))) PublishLocked({});
}

// --- Loading ---

std::vector<base::Status> LifeCycle::Load(std::vector<LoadJob> jobs) {
  std::vector<std::unique_ptr<LoadAttempt>> loads;
  std::vector<LoadAttempt*> begun;
  std::set<ModelId> ids;
  for (LoadJob& job : jobs) {
    LoadAttempt& load = *loads.emplace_back(std::make_unique<LoadAttempt>(std::move(job)));
    ids.insert(load.id());
    base::Status status = Begin(load);
    if (status.ok()) {
      begun.push_back(&load);
      continue;
    }
    if (NoteFailure(load, FailureHistory::kNoVersion, std::string(status.message()))) {
      NEREID_LOG(kError, "failed to load model '{}': {}", load.id().Text(), status.message());
    }
    load.Finish(std::move(status));
  }
  Start(begun, ids);
  std::vector<base::Status> results;
  for (const auto& load : loads) results.push_back(load->Wait());
  return results;
}

base::Status LifeCycle::Begin(LoadAttempt& load) {
  base::Result<std::set<int64_t>> versions = repository::VersionsToServe(load.source());
  {
    base::MutexLock lock(mutex_);
    states_.AddModel(load.id());
    NEREID_RETURN_IF_ERROR(versions.status());
    load.SetWork(PlanLocked(load, *std::move(versions)));
  }
  for (const int64_t version : load.work().loading) {
    if (load.work().repeating.contains(version)) {
      NEREID_VLOG(1, "loading again: {}:{}", load.id().Text(), version);
    } else {
      NEREID_LOG(kInfo, "loading: {}:{}", load.id().Text(), version);
    }
  }
  return base::OkStatus();
}

LoadWork LifeCycle::PlanLocked(const LoadAttempt& load, std::set<int64_t> wanted) {
  using enum config::ConfigChange;
  LoadWork work;
  for (const int64_t version : wanted) {
    const VersionKey key{load.id(), version};
    const auto loaded = loaded_.find(key);
    const config::ConfigChange change =
        loaded == loaded_.end() ? kReload : ChangeNeeded(*loaded->second, load.source());
    if (change == kNothing) continue;
    work.loading.insert(version);
    if (change == kInstances) work.changing.insert(version);
    if (options_.repeats_loads && failures_.IsRepetition(key, load.source().timestamp.Latest())) {
      work.repeating.insert(version);
    }
    states_.SetLoading(key);
  }
  work.wanted = std::move(wanted);
  return work;
}

void LifeCycle::Start(const std::vector<LoadAttempt*>& loads, const std::set<ModelId>& ids) {
  LoadedVersions retired;
  {
    base::MutexLock lock(mutex_);
    for (LoadAttempt* const load : loads) {
      if (load->work().loading.empty()) {
        CommitLocked(*load, {}, retired);
        continue;
      }
      loads_.insert(load);
      if (is_stopping_) load->Cancel();
    }
    teardown_.Expect(retired);
    PublishLocked(ids);
  }
  TellUnloading(retired);
  teardown_.Add(std::move(retired));
  for (LoadAttempt* const load : loads) {
    if (load->work().loading.empty()) {
      NEREID_LOG(kInfo, "successfully loaded '{}'", load->id().Text());
      load->Finish(base::OkStatus());
    }
    for (const int64_t version : load->work().loading) {
      load_pool_.Post([this, load, version] { LoadVersion(*load, version); });
    }
  }
}

void LifeCycle::LoadVersion(LoadAttempt& load, int64_t version) {
  std::unique_ptr<LoadedVersion> made;
  base::Status status;
  if (load.work().changing.contains(version)) {
    status = ChangeInstances(load, version);
  } else if (auto result = MakeVersion(factory_, load, version, options_.load_retries);
             result.ok()) {
    made = *std::move(result);
  } else {
    status = result.status();
  }
  if (status.ok()) {
    base::MutexLock lock(mutex_);
    failures_.Forget({load.id(), version});
  } else {
    TellFailure(load, version, status);
  }
  if (load.AddResult(version, status, std::move(made))) End(load);
}

base::Status LifeCycle::ChangeInstances(LoadAttempt& load, int64_t version) {
  LoadedVersion* loaded = nullptr;
  core::ModelHandle pin;  // keeps the version during the change
  {
    base::MutexLock lock(mutex_);
    const auto found = loaded_.find({load.id(), version});
    if (found != loaded_.end() && found->second->model()->TryPin()) {
      loaded = found->second.get();
      pin = core::ModelHandle(*loaded->model());
    }
  }
  if (loaded == nullptr) return base::UnavailableError("Server exiting");
  NEREID_RETURN_IF_ERROR(load.CheckWanted());
  NEREID_ASSIGN_OR_RETURN(auto changed, loaded->servable->ChangeInstances(
                                            load.source(), [&load] { return load.CheckWanted(); }));
  auto source = load.job().source;  // later that of the change before, which ends without the lock
  base::MutexLock lock(mutex_);
  loaded->changed_config = std::move(changed);
  loaded->source.swap(source);
  return base::OkStatus();
}

bool LifeCycle::NoteFailure(const LoadAttempt& load, int64_t version, std::string reason) {
  base::MutexLock lock(mutex_);
  const bool is_new =
      failures_.Note({load.id(), version}, load.source().timestamp.Latest(), std::move(reason));
  return is_new || !options_.repeats_loads;
}

void LifeCycle::TellFailure(const LoadAttempt& load, int64_t version, const base::Status& status) {
  if (!NoteFailure(load, version, status.ToString())) return;
  const bool is_change = load.work().changing.contains(version);
  NEREID_LOG(kError, "failed to {} '{}' version {}: {}",
             is_change ? "change the instances of" : "load", load.id().Text(), version,
             status.ToString());
}

void LifeCycle::End(LoadAttempt& load) {
  LoadAttempt::Results results = load.TakeResults();
  LoadedVersions retired;
  base::Status status;
  bool is_loaded = false;
  {
    base::MutexLock lock(mutex_);
    if (is_stopping_) {
      for (const int64_t version : load.work().loading) {
        results.failed.try_emplace(version, "Server exiting");
      }
    }
    is_loaded = results.failed.empty();
    if (is_loaded) {
      CommitLocked(load, std::move(results), retired);
    } else {
      status = RollBackLocked(load, std::move(results), retired);
    }
    teardown_.Expect(retired);
    PublishLocked({load.id()});
  }
  if (is_loaded) {
    NEREID_LOG(kInfo, "successfully loaded '{}'", load.id().Text());
    // As in Triton, agents hear of the unload of the replaced versions before they hear of the
    // successful load.
    TellUnloading(retired);
  } else if (load.work().repeating != load.work().loading) {
    NEREID_LOG(kInfo, "failed to load '{}'", load.id().Text());
  }
  teardown_.Add(std::move(retired));
  if (const auto& files = load.source().files; files != nullptr) {
    is_loaded ? files->OnLoaded() : files->OnLoadFailed();
  }
  {
    base::MutexLock lock(mutex_);
    loads_.erase(&load);
    load_ended_.NotifyAll();
  }
  // The caller of Load destroys the attempt once it is finished.
  load.Finish(std::move(status));
}

void LifeCycle::CommitLocked(const LoadAttempt& load, LoadAttempt::Results results,
                             LoadedVersions& retired) {
  for (const int64_t version : states_.VersionsOf(load.id())) {
    if (load.work().wanted.contains(version)) continue;
    TakeLocked({load.id(), version}, retired);
    // A version that failed before is no longer reported once it is not wanted.
    states_.SetUnwanted({load.id(), version});
  }
  for (auto& [version, loaded] : results.loaded) {
    const VersionKey key{load.id(), version};
    states_.SetReady(key, loaded->model());
    std::unique_ptr<LoadedVersion>& place = loaded_[key];
    if (place != nullptr) retired.push_back(std::move(place));
    place = std::move(loaded);
  }
  const ModelRecord* const record = states_.Find(load.id());
  auto traffic = TrafficAfterLoad(load.source(), record);
  if (record != nullptr && traffic != record->traffic) {
    states_.SetTraffic(load.id(), std::move(traffic));
  }
}

base::Status LifeCycle::ChangeTraffic(std::string_view name, const service::TrafficChange& change) {
  base::MutexLock lock(mutex_);
  const std::shared_ptr<const ModelTable> table = table_.Share();
  NEREID_ASSIGN_OR_RETURN(const ModelId id, table->FindId(name));
  NEREID_ASSIGN_OR_RETURN(auto traffic, TrafficAfterChange(*table, id, name, change));
  if (traffic == table->Record(id)->traffic) return base::OkStatus();
  states_.SetTraffic(id, std::move(traffic));
  PublishLocked({id});
  return base::OkStatus();
}

base::Status LifeCycle::RollBackLocked(const LoadAttempt& load, LoadAttempt::Results results,
                                       LoadedVersions& retired) {
  std::string text;
  for (const auto& [version, reason] : results.failed) {
    text += fmt::format("version {} is at UNAVAILABLE state: {};", version, reason);
    states_.SetFailed({load.id(), version}, reason);
  }
  for (auto& [version, loaded] : results.loaded) {
    states_.SetRolledBack({load.id(), version}, loaded->model());
    retired.push_back(std::move(loaded));
  }
  return base::InvalidArgumentError(std::move(text));
}

// --- Unloading ---

void LifeCycle::TakeLocked(const VersionKey& key, LoadedVersions& retired) {
  const auto found = loaded_.find(key);
  if (found == loaded_.end()) return;
  // Steps of ensembles with unfinished requests may still pin it.
  found->second->serves_steps = true;
  states_.SetUnloading(key, found->second->model());
  retired.push_back(std::move(found->second));
  loaded_.erase(found);
}

void LifeCycle::Unload(const std::set<ModelId>& ids, Rules rules) {
  LoadedVersions retired;
  {
    base::MutexLock lock(mutex_);
    for (const ModelId& id : ids) {
      for (const int64_t version : states_.VersionsOf(id)) {
        states_.SetUnwanted({id, version});
        TakeLocked({id, version}, retired);
        failures_.Forget({id, version});
      }
      failures_.Forget({id, FailureHistory::kNoVersion});
      const bool has_rules = states_.Find(id) != nullptr && states_.Find(id)->traffic != nullptr;
      if (has_rules && rules == Rules::kForgotten) states_.SetTraffic(id, nullptr);
      // Otherwise a model that has no version would be missed for ever.
      states_.RemoveIfEmpty(id);
    }
    teardown_.Expect(retired);
    PublishLocked(ids);
  }
  TellUnloading(retired);
  teardown_.Add(std::move(retired));
}

void LifeCycle::TellUnloading(const LoadedVersions& versions) {
  std::set<std::shared_ptr<repository::ModelFiles>> files;
  {
    base::MutexLock lock(mutex_);
    for (const auto& version : versions) files.merge(version->FilesInUse());
    if (files.empty()) return;
    for (const auto& [key, loaded] : loaded_) {
      for (const auto& used : loaded->FilesInUse()) files.erase(used);
    }
  }
  for (const auto& some : files) some->OnUnloading();
}

void LifeCycle::OnGone(const ModelId& id, const core::Model& model) {
  base::MutexLock lock(mutex_);
  if (states_.SetGone({id, model.version()}, model)) PublishLocked({id});
}

bool LifeCycle::HoldIdle(const std::set<ModelId>& ids) {
  base::MutexLock lock(mutex_);
  if (teardown_.AreNeeded(ids)) return false;
  std::vector<LoadedVersion*> versions;
  for (const auto& [key, loaded] : loaded_) {
    if (ids.contains(key.id)) versions.push_back(loaded.get());
  }
  // A step of a request that is in progress must find its model, and cannot wait for it. Without
  // requests in the ensembles there are no steps.
  return HoldAllIfIdle(OuterFirst(std::move(versions)));
}

bool LifeCycle::WaitUntilGone(const std::set<ModelId>& ids, base::TimePoint deadline) {
  return teardown_.WaitUntilGone(ids, deadline);
}

void LifeCycle::CancelLoads(std::string_view name) {
  base::MutexLock lock(mutex_);
  for (LoadAttempt* const load : loads_) {
    if (load->id().name == name) load->Cancel();
  }
}

void LifeCycle::CancelAllLoads() {
  base::MutexLock lock(mutex_);
  is_stopping_ = true;
  for (LoadAttempt* const load : loads_) load->Cancel();
}

Unfinished LifeCycle::UnloadAll(base::TimePoint deadline) {
  std::set<ModelId> ids;
  {
    base::MutexLock lock(mutex_);
    is_stopping_ = true;
    for (const auto& [key, version] : loaded_) ids.insert(key.id);
  }
  Unload(ids);
  {
    base::MutexLock lock(mutex_);
    while (!loads_.empty() && load_ended_.WaitUntil(mutex_, deadline)) {
    }
  }
  Unfinished left = teardown_.Wait(deadline);
  base::MutexLock lock(mutex_);
  for (const LoadAttempt* load : loads_) {
    left.work.push_back(fmt::format("Model '{}' is being loaded", load->id().Text()));
  }
  return left;
}

}  // namespace nereid::engine
