// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/model_repository_manager/model_repository_manager.cc of Triton.
#include "engine/model_control.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "base/log.h"
#include "base/temporary_folder.h"
#include "config/paths.h"
#include "repository/changes.h"
#include "schedule/ensemble_plan.h"

namespace nereid::engine {
namespace {

constexpr const char* kAllModels = "*";

base::Status FailedToLoadAll() { return base::InternalError("failed to load all models"); }

// Triton's text stands first; it is misleading where nothing polls.
base::Status NotExplicit() {
  return base::UnavailableError(
      "explicit model load / unload is not allowed if polling is enabled; it needs the model "
      "control "
      "mode 'explicit'");
}

// Of a load by name. Triton says that it failed, and leaves the reason to its log.
base::Status FailedToPoll(const std::string& name, const std::map<ModelId, std::string>& refused) {
  std::string reasons;
  for (const auto& [id, reason] : refused) {
    if (id.name == name) reasons += (reasons.empty() ? "" : "\n") + reason;
  }
  if (reasons.empty()) reasons = "model not found in any model repository";
  return base::InternalError(
      fmt::format("failed to load '{}', failed to poll from model repository: {}", name, reasons));
}

int64_t WallClockNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool Contains(const std::set<ModelId>& ids, const std::vector<ModelId>& some) {
  return std::ranges::any_of(some, [&](const ModelId& id) { return ids.contains(id); });
}

}  // namespace

ModelControl::ModelControl(const repository::Scanner& scanner, LifeCycle& life_cycle,
                           ModelControlOptions options)
    : scanner_(scanner), life_cycle_(life_cycle), options_(std::move(options)) {}

template <typename MakePlan>
std::optional<ModelControl::Plan> ModelControl::Begin(MakePlan make_plan) {
  while (true) {
    Infos now;
    {
      base::MutexLock lock(mutex_);
      if (is_stopping_) return std::nullopt;
      ++operations_;
      now = infos_;
    }
    Plan plan = make_plan(now);
    base::MutexLock lock(mutex_);
    Infos next = ApplyLocked(plan);
    if (IsBusyLocked(plan)) {
      --operations_;
      ended_.NotifyAll();
      while (IsBusyLocked(plan) && !is_stopping_) ended_.Wait(mutex_);
    } else if (IsCurrentLocked(plan, now)) {
      CommitLocked(plan, std::move(next));
      return plan;
    } else {
      --operations_;
      ended_.NotifyAll();
    }
  }
}

bool ModelControl::IsBusyLocked(const Plan& plan) const {
  const auto is_busy = [&](const ModelId& id) { return busy_.contains(id); };
  return std::ranges::any_of(plan.affected, is_busy) || std::ranges::any_of(plan.touched, is_busy);
}

bool ModelControl::IsCurrentLocked(const Plan& plan, const Infos& then) const {
  const auto revision = [](const Infos& infos, const ModelId& id) {
    const auto info = infos.find(id);
    return info == infos.end() ? 0 : info->second.revision;
  };
  const auto is_current = [&](const ModelId& id) {
    return revision(infos_, id) == revision(then, id);
  };
  return std::ranges::all_of(plan.changed, is_current) &&
         std::ranges::all_of(plan.removed, is_current) &&
         std::ranges::all_of(plan.touched, is_current);
}

ModelControl::Infos ModelControl::ApplyLocked(Plan& plan) const {
  Infos next = infos_;
  for (const ModelId& id : plan.removed) next.erase(id);
  for (const ModelId& id : plan.changed) next[id] = plan.infos.at(id);
  for (const ModelId& id : plan.touched) {
    const auto known = next.find(id);
    if (known != next.end()) known->second.is_wanted |= plan.infos.at(id).is_wanted;
  }
  plan.affected = plan.changed;
  plan.affected.insert(plan.removed.begin(), plan.removed.end());
  if (plan.affected.empty()) return next;
  const ModelSources before = SourcesOf(infos_);
  const ModelSources after = SourcesOf(next);
  for (bool is_growing = true; is_growing;) {
    is_growing = false;
    for (const auto& [id, source] : after) {
      if (source->config->ensemble_scheduling() == nullptr || plan.affected.contains(id)) continue;
      const std::vector<ModelId> parts = StepModels(after, *source);
      if (parts != StepModels(before, *source) || Contains(plan.affected, parts)) {
        plan.affected.insert(id);
        is_growing = true;
      }
    }
  }
  return next;
}

void ModelControl::CommitLocked(Plan& plan, Infos infos) {
  infos_ = std::move(infos);
  plan.infos.clear();
  for (const ModelId& id : plan.changed) infos_.at(id).revision = ++last_revision_;
  for (const ModelId& id : plan.touched) refused_.erase(id);
  for (const ModelId& id : plan.affected) refused_.erase(id);
  for (const auto& [id, reason] : plan.refused) refused_[id] = reason;
  busy_.insert(plan.affected.begin(), plan.affected.end());
  busy_.insert(plan.touched.begin(), plan.touched.end());
  std::set<ModelId> named;
  for (const auto& [id, info] : infos_) named.insert(id);
  life_cycle_.SetNamed(std::move(named));
}

void ModelControl::End(const Plan& plan) {
  base::MutexLock lock(mutex_);
  for (const ModelId& id : plan.affected) busy_.erase(id);
  for (const ModelId& id : plan.touched) busy_.erase(id);
  --operations_;
  ended_.NotifyAll();
}

bool ModelControl::Stop(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  is_stopping_ = true;
  ended_.NotifyAll();
  while (operations_ > 0) {
    if (!ended_.WaitUntil(mutex_, deadline)) return operations_ == 0;
  }
  return true;
}

base::Status ModelControl::Start() {
  std::optional<Plan> plan;
  if (options_.mode == ControlMode::kExplicit && !options_.startup_models.contains(kAllModels)) {
    plan = Begin(
        [this](const Infos& now) { return PlanLoad(options_.startup_models, {}, {nullptr}, now); });
  } else {
    if (options_.startup_models.size() > 1) {
      return base::InvalidArgumentError(
          "Wildcard model name '*' must be the ONLY startup model if specified at all.");
    }
    plan = Begin([this](const Infos& now) { return PlanPoll(now); });
  }
  if (!plan) return FailedToLoadAll();
  Execute(*plan);
  base::Status status;
  if (options_.mode == ControlMode::kExplicit && !options_.startup_models.contains(kAllModels)) {
    status = CheckLoaded(options_.startup_models, *plan);
  }
  End(*plan);
  NEREID_RETURN_IF_ERROR(status);
  if (!plan->all_polled) return FailedToLoadAll();
  return CheckAllReady();
}

base::Status ModelControl::CheckAllReady() const {
  base::MutexLock lock(mutex_);
  for (const auto& [id, info] : infos_) {
    const ModelRecord* const record = life_cycle_.Table().Record(id);
    if (record == nullptr || record->versions.empty()) return FailedToLoadAll();
    for (const auto& [number, version] : record->versions) {
      if (version.state != VersionState::kReady) return FailedToLoadAll();
    }
  }
  return base::OkStatus();
}

void ModelControl::Poll() {
  const std::optional<Plan> plan = Begin([this](const Infos& now) { return PlanPoll(now); });
  if (!plan) return;
  if (!plan->affected.empty()) Execute(*plan);
  End(*plan);
}

base::Status ModelControl::Load(const std::string& name, const service::LoadOptions& options) {
  if (options_.mode != ControlMode::kExplicit) {
    return NotExplicit();
  }
  NEREID_RETURN_IF_ERROR(config::ValidateModelName(name));
  Files files = std::shared_ptr<repository::PrivateFolder>();
  if (!options.files.empty() && options.config) {
    std::vector<repository::OverrideFile> list;
    for (const service::LoadOptions::File& file : options.files) {
      list.push_back({file.path, file.content});
    }
    files = repository::PrivateFolder::Create(list);
  } else if (!options.files.empty()) {
    files = base::InvalidArgumentError(
        "Load parameter 'config' must be specified for model file override");
  }
  const std::optional<Plan> plan =
      Begin([&](const Infos& now) { return PlanLoad({name}, options, files, now); });
  if (!plan) return base::UnavailableError("Server not ready");
  if (!plan->affected.empty()) Execute(*plan);
  // Before its end: an unload that waits for it would leave nothing to be seen of a failure.
  base::Status status = CheckLoad(name, *plan);
  End(*plan);
  return status;
}

base::Status ModelControl::CheckLoad(const std::string& name, const Plan& plan) const {
  NEREID_RETURN_IF_ERROR(CheckLoaded({name}, plan));
  if (!plan.all_polled) return FailedToPoll(name, plan.refused);
  base::MutexLock lock(mutex_);
  for (const auto& [id, info] : infos_) {
    if (id.name != name) continue;
    const ModelRecord* const record = life_cycle_.Table().Record(id);
    if (record == nullptr || record->versions.empty()) {
      return base::InternalError(fmt::format("failed to load '{}', no version is available", name));
    }
  }
  return base::OkStatus();
}

base::Status ModelControl::CheckLoaded(const std::set<std::string>& names, const Plan& plan) const {
  std::string text;
  base::MutexLock lock(mutex_);
  for (const ModelId& id : plan.affected) {
    const auto info = infos_.find(id);
    if (!names.contains(id.name) || info == infos_.end() || info->second.load_status.ok()) continue;
    text += fmt::format("load failed for model '{}': {}\n", id.Text(),
                        info->second.load_status.message());
  }
  return text.empty() ? base::OkStatus() : base::InvalidArgumentError(std::move(text));
}

base::Status ModelControl::Unload(const std::string& name, bool with_parts) {
  if (options_.mode != ControlMode::kExplicit) {
    return NotExplicit();
  }
  // Else it would have to wait for a load that nobody wants any more.
  life_cycle_.CancelLoads(name);
  const std::optional<Plan> plan =
      Begin([&](const Infos& now) { return PlanUnload(name, with_parts, now); });
  if (!plan) return base::UnavailableError("Server not ready");
  if (!plan->affected.empty()) Execute(*plan);
  End(*plan);
  return base::OkStatus();
}

std::vector<service::IndexEntry> ModelControl::Index(bool only_ready) const {
  const repository::Listing listing = scanner_.List();
  const ModelTable& table = life_cycle_.Table();
  std::set<ModelId> ids = listing.duplicates;
  for (const auto& [id, place] : listing.places) ids.insert(id);
  for (const auto& [id, record] : table.models()) {
    const bool is_ready = std::ranges::any_of(record->versions, [](const auto& version) {
      return version.second.state == VersionState::kReady;
    });
    if (is_ready) ids.insert(id);
  }
  std::vector<service::IndexEntry> index;
  base::MutexLock lock(mutex_);
  for (const ModelId& id : ids) {
    if (listing.duplicates.contains(id)) {
      index.push_back({id.name, "", std::string(StateName(VersionState::kUnavailable)),
                       std::string(repository::kDuplicateReason)});
      continue;
    }
    const ModelRecord* const record = table.Record(id);
    if (record != nullptr && !record->versions.empty()) {
      for (const auto& [number, version] : record->versions) {
        if (only_ready && version.state != VersionState::kReady) continue;
        index.push_back({id.name, std::to_string(number), std::string(StateName(version.state)),
                         version.reason});
      }
      continue;
    }
    if (only_ready) continue;
    std::string reason;
    if (const auto refused = refused_.find(id); refused != refused_.end()) {
      reason = refused->second;
    } else if (const auto info = infos_.find(id); info != infos_.end()) {
      reason = std::string(info->second.load_status.message());
    }
    const VersionState state = VersionState::kUnavailable;
    index.push_back({id.name, "", reason.empty() ? "" : std::string(StateName(state)), reason});
  }
  return index;
}

// --- Plans ---

ModelSources ModelControl::SourcesOf(const Infos& infos) {
  ModelSources sources;
  for (const auto& [id, info] : infos) sources.emplace_hint(sources.end(), id, info.source);
  return sources;
}

void ModelControl::Accept(repository::ModelSource source, repository::ModelTimestamp timestamp,
                          const Infos& now, Plan& plan) {
  const ModelId id = source.id();
  const auto known = now.find(id);
  Info info;
  info.source = std::make_shared<const repository::ModelSource>(std::move(source));
  info.timestamp = std::move(timestamp);
  if (known != now.end()) info.previous = known->second.timestamp;
  plan.infos[id] = std::move(info);
  plan.changed.insert(id);
}

ModelControl::Plan ModelControl::PlanPoll(const Infos& now) const {
  repository::KnownModels known;
  for (const auto& [id, info] : now) known[id] = {info.source->repository, info.timestamp};
  repository::ScanResult scan = scanner_.ScanAll(known);
  repository::Changes changes = repository::Compare(known, scan);
  Plan plan(now);
  plan.removed = std::move(changes.removed);
  for (const ModelId& id : plan.removed) plan.infos.erase(id);
  for (auto& [id, source] : scan.models) {
    if (changes.added.contains(id) || changes.modified.contains(id)) {
      repository::ModelTimestamp timestamp = source.timestamp;
      Accept(std::move(source), std::move(timestamp), now, plan);
    } else {
      plan.refused[id] = std::string(source.config.status().message());
    }
  }
  plan.all_polled = plan.refused.empty() && scan.unreadable_repositories.empty();
  return plan;
}

void ModelControl::PollName(const std::string& name, const service::LoadOptions& options,
                            const Infos& now, Plan& plan) const {
  std::vector<repository::ModelPlace> places;
  if (config::ValidateModelName(name).ok()) places = scanner_.Find(name);
  if (places.empty()) plan.all_polled = false;
  for (const repository::ModelPlace& place : places) {
    const auto known = now.find(place.id);
    const bool is_known = known != now.end();
    if (is_known && !options.config && known->second.source->repository == place.repository &&
        !known->second.timestamp.IsOlderThan(scanner_.TimestampOf(place))) {
      plan.touched.insert(place.id);
      continue;
    }
    repository::ModelSource source = scanner_.Examine(place, {.config_json = options.config});
    if (!source.config.ok()) {
      plan.all_polled = false;
      plan.refused[place.id] = std::string(source.config.status().message());
      if (is_known) plan.touched.insert(place.id);
      continue;
    }
    repository::ModelTimestamp timestamp = source.timestamp;
    // Files older than this moment do not bring the model back to its own configuration.
    if (options.config) timestamp.SetConfigTime(WallClockNs());
    Accept(std::move(source), std::move(timestamp), now, plan);
  }
}

void ModelControl::PollFiles(const std::string& name, const service::LoadOptions& options,
                             const Files& files, const Infos& now, Plan& plan) const {
  base::Status status = files.status();
  if (status.ok()) {
    repository::ModelSource source = scanner_.Examine({.id = {std::string(), name},
                                                       .repository = {},
                                                       .folder = (*files)->path(),
                                                       .files = *files},
                                                      {.config_json = options.config});
    // Without a timestamp: a load without files brings back what lies in the repository.
    if (source.config.ok()) return Accept(std::move(source), {}, now, plan);
    status = source.config.status();
  } else {
    NEREID_LOG(kError, "Poll failed for model directory '{}': {}", name, status.message());
  }
  plan.all_polled = false;
  plan.refused[name] =
      files.ok() ? base::HideTemporaryFolder(std::string(status.message()), (*files)->path(), name)
                 : std::string(status.message());
  if (now.contains(name)) plan.touched.insert(name);
}

ModelControl::Plan ModelControl::PlanLoad(const std::set<std::string>& names,
                                          const service::LoadOptions& options, const Files& files,
                                          const Infos& now) const {
  Plan plan(now);
  std::set<std::string> seen = names;
  std::vector<std::string> round(names.begin(), names.end());
  while (!round.empty()) {
    for (const std::string& name : round) {
      const bool is_named = names.contains(name);
      if (is_named && !options.files.empty()) {
        PollFiles(name, options, files, now, plan);
      } else {
        PollName(name, is_named ? options : service::LoadOptions(), now, plan);
      }
    }
    // What the ensembles among them contain is looked at as well.
    std::vector<std::string> next;
    for (const auto& [id, info] : plan.infos) {
      const config::Ensembling* const ensemble = info.source->config->ensemble_scheduling();
      if (ensemble == nullptr || std::ranges::find(round, id.name) == round.end()) continue;
      for (const config::Ensembling::Step& step : ensemble->step) {
        if (seen.insert(step.model_name).second) next.push_back(step.model_name);
      }
    }
    round = std::move(next);
  }
  for (auto& [id, info] : plan.infos) {
    const auto known = now.find(id);
    const bool was_wanted = known != now.end() && known->second.is_wanted;
    info.is_wanted = was_wanted || names.contains(id.name);
  }
  return plan;
}

ModelControl::Plan ModelControl::PlanUnload(const std::string& name, bool with_parts,
                                            const Infos& now) {
  Plan plan(now);
  for (const auto& [id, info] : now) {
    if (id.name == name) plan.removed.insert(id);
  }
  for (const ModelId& id : plan.removed) plan.infos.erase(id);
  bool is_growing = with_parts;
  const ModelSources before = SourcesOf(now);
  while (is_growing) {
    is_growing = false;
    const ModelSources after = SourcesOf(plan.infos);
    std::set<ModelId> still_used;
    std::set<ModelId> candidates;
    for (const auto& [id, source] : before) {
      std::set<ModelId>& uses = plan.removed.contains(id) ? candidates : still_used;
      for (ModelId& part : StepModels(before, *source)) uses.insert(std::move(part));
    }
    for (const ModelId& id : candidates) {
      const auto info = plan.infos.find(id);
      if (info == plan.infos.end() || info->second.is_wanted || still_used.contains(id)) continue;
      plan.infos.erase(info);
      plan.removed.insert(id);
      is_growing = true;
    }
  }
  return plan;
}

// --- Work ---

std::shared_ptr<const repository::ModelSource> ModelControl::SourceOf(const ModelId& id) const {
  base::MutexLock lock(mutex_);
  const auto info = infos_.find(id);
  return info == infos_.end() ? nullptr : info->second.source;
}

void ModelControl::SetInvalid(const ModelId& id, base::Status status) {
  const std::string text = status.ToString();
  bool is_new = true;
  {
    base::MutexLock lock(mutex_);
    Info& info = infos_.at(id);
    info.is_invalid = true;
    info.load_status = std::move(status);
    is_new = std::exchange(info.told, text) != text || options_.mode != ControlMode::kPoll;
  }
  if (is_new) NEREID_LOG(kError, "{}", text);
}

void ModelControl::SetValid(const ModelId& id) {
  base::MutexLock lock(mutex_);
  Info& info = infos_.at(id);
  info.is_invalid = false;
  info.load_status = base::OkStatus();
}

void ModelControl::Execute(const Plan& plan) {
  ModelSources sources;
  {
    base::MutexLock lock(mutex_);
    sources = SourcesOf(infos_);
  }
  std::vector<EnsembleEntry> ensembles = OrderEnsembles(sources);
  std::erase_if(ensembles,
                [&](const EnsembleEntry& entry) { return !plan.affected.contains(entry.id); });
  UnloadLost(ensembles, plan);
  LoadPlain(plan);
  LoadEnsembles(ensembles);
}

void ModelControl::UnloadLost(const std::vector<EnsembleEntry>& ensembles, const Plan& plan) {
  std::set<ModelId> lost = plan.removed;
  for (const EnsembleEntry& entry : ensembles) {
    SetValid(entry.id);
    base::Status status = entry.status;
    for (const auto& [part, versions] : entry.models) {
      if (!status.ok()) break;
      base::MutexLock lock(mutex_);
      const Info& info = infos_.at(part);
      if (!info.is_invalid) continue;
      status = base::InvalidArgumentError(fmt::format(
          "ensemble '{}' depends on '{}' which is not valid. Model '{}' failed with error: {}",
          entry.id.Text(), part.Text(), part.Text(), info.load_status.message()));
    }
    if (status.ok()) continue;
    SetInvalid(entry.id, std::move(status));
    lost.insert(entry.id);
  }
  life_cycle_.Unload(lost);
}

void ModelControl::RunJobs(std::vector<LoadJob> jobs) {
  std::vector<ModelId> ids;
  for (const LoadJob& job : jobs) ids.push_back(job.source->id());
  std::vector<base::Status> results = life_cycle_.Load(std::move(jobs));
  base::MutexLock lock(mutex_);
  for (size_t i = 0; i < ids.size(); ++i) {
    Info& info = infos_.at(ids[i]);
    // The next look is to find the same change again.
    if (!results[i].ok()) {
      info.timestamp = info.previous;
      auto source = std::make_shared<repository::ModelSource>(*info.source);
      source->files.reset();  // nobody uses them
      info.source = std::move(source);
      info.revision = ++last_revision_;
    }
    if (results[i].ok()) info.told.clear();
    info.load_status = std::move(results[i]);
  }
}

void ModelControl::LoadPlain(const Plan& plan) {
  std::vector<LoadJob> jobs;
  for (const ModelId& id : plan.changed) {
    LoadJob job{.source = SourceOf(id), .ensemble_depth = 0, .parts = {}};
    if (job.source->config->ensemble_scheduling() == nullptr) jobs.push_back(std::move(job));
  }
  RunJobs(std::move(jobs));
}

void ModelControl::LoadEnsembles(const std::vector<EnsembleEntry>& ensembles) {
  for (size_t i = 0; i < ensembles.size();) {
    const int depth = ensembles[i].depth;
    std::vector<LoadJob> jobs;
    std::set<ModelId> lost;
    for (; i < ensembles.size() && ensembles[i].depth == depth; ++i) {
      const EnsembleEntry& entry = ensembles[i];
      if (!entry.status.ok()) continue;
      base::Result<LoadJob> job = PrepareEnsemble(entry);
      if (job.ok()) {
        jobs.push_back(*std::move(job));
      } else {
        SetInvalid(entry.id, job.status());
        lost.insert(entry.id);
      }
    }
    life_cycle_.Unload(lost);
    RunJobs(std::move(jobs));
  }
}

base::Status ModelControl::CheckPart(const EnsembleEntry& entry, const ModelId& part,
                                     const std::set<int64_t>& versions) const {
  const std::string start =
      fmt::format("ensemble '{}' depends on '{}' ", entry.id.Text(), part.Text());
  {
    base::MutexLock lock(mutex_);
    const Info& info = infos_.at(part);
    if (info.is_invalid) {
      return base::InvalidArgumentError(
          fmt::format("{}which is not valid. Model '{}' failed with error: {}", start, part.Text(),
                      info.load_status.message()));
    }
    if (life_cycle_.LoadedModel(part, -1) == nullptr) {
      if (info.load_status.ok()) {
        return base::InvalidArgumentError(start + "which has no loaded version.");
      }
      return base::InvalidArgumentError(
          fmt::format("{}which has no loaded version. Model '{}' loading failed with error: {}",
                      start, part.Text(), info.load_status.message()));
    }
  }
  for (const int64_t version : versions) {
    if (version < 0 || life_cycle_.LoadedModel(part, version) != nullptr) continue;
    return base::InvalidArgumentError(
        fmt::format("{}whose required version {} is not loaded.", start, version));
  }
  return base::OkStatus();
}

base::Result<LoadJob> ModelControl::PrepareEnsemble(const EnsembleEntry& entry) const {
  for (const auto& [part, versions] : entry.models) {
    NEREID_RETURN_IF_ERROR(CheckPart(entry, part, versions));
  }
  auto source = std::make_shared<repository::ModelSource>(*SourceOf(entry.id));
  config::Ensembling ensemble = *source->config->ensemble_scheduling();
  LoadJob job;
  job.ensemble_depth = entry.depth;
  std::vector<std::shared_ptr<core::Model>> latest;  // whose configurations count
  std::vector<const config::ModelConfig*> configs;
  std::vector<bool> decoupled;
  for (size_t i = 0; i < ensemble.step.size(); ++i) {
    config::Ensembling::Step& step = ensemble.step[i];
    step.model_namespace = entry.steps[i].name_space;
    job.parts.push_back(life_cycle_.LoadedModel(entry.steps[i], step.model_version));
    latest.push_back(life_cycle_.LoadedModel(entry.steps[i], -1));
    configs.push_back(&latest.back()->config());
    decoupled.push_back(configs.back()->is_decoupled());
  }
  source->config->scheduling_choice = std::move(ensemble);
  NEREID_RETURN_IF_ERROR(schedule::CheckEnsembleSteps(*source->config, configs));
  // Whether decoupled models meet in one step is a fault of the configuration, too.
  NEREID_RETURN_IF_ERROR(schedule::EnsemblePlan::Compile(*source->config, decoupled).status());
  job.source = std::move(source);
  return job;
}

}  // namespace nereid::engine
