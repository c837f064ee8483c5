// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/model_repository_manager/model_repository_manager.cc.
#include "engine/model_control.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "config/paths.h"
#include "engine/ensemble_job.h"
#include "engine/model_index.h"

namespace nereid::engine {
namespace {

constexpr const char* kAllModels = "*";

base::Status FailedToLoadAll() { return base::InternalError("failed to load all models"); }

// Triton's text comes first; on its own it is misleading when polling is disabled.
base::Status NotExplicit() {
  return base::UnavailableError(
      "explicit model load / unload is not allowed if polling is enabled; it needs the model "
      "control mode 'explicit'");
}

// The error of a load by name. Triton only says that it failed, and logs the reason. The reasons of
// parts of an ensemble count if there is nothing to say of the ensemble itself.
base::Status FailedToPoll(const std::string& name, const ModelPlan& plan) {
  constexpr const char* kNotThere = "model not found in any model repository";
  std::vector<std::string> own;
  std::vector<std::string> of_parts;
  const auto add = [&](const ModelId& id, const std::string& reason) {
    if (id.name == name) {
      own.push_back(reason);
    } else {
      of_parts.push_back(fmt::format("part '{}': {}", id.Text(), reason));
    }
  };
  for (const auto& [id, reason] : plan.refused) add(id, reason);
  for (const std::string& missing : plan.missing) add(missing, kNotThere);
  return base::InternalError(
      fmt::format("failed to load '{}', failed to poll from model repository: {}", name,
                  fmt::join(own.empty() ? of_parts : own, "\n")));
}

// Writes the files of a load request to a folder of their own.
LoadFiles FilesOf(const service::LoadOptions& options) {
  if (options.files.empty()) return std::shared_ptr<repository::PrivateFolder>();
  if (!options.config) {
    return base::InvalidArgumentError(
        "Load parameter 'config' must be specified for model file override");
  }
  std::vector<repository::OverrideFile> files;
  for (const service::LoadOptions::File& file : options.files) {
    files.push_back({file.path, file.content});
  }
  return repository::PrivateFolder::Create(files);
}

base::Status PartIsInvalid(const ModelId& ensemble, const ModelId& part, const ModelInfo& info) {
  return base::InvalidArgumentError(fmt::format(
      "ensemble '{}' depends on '{}' which is not valid. Model '{}' failed with error: {}",
      ensemble.Text(), part.Text(), part.Text(), info.load_status.message()));
}

int64_t WallClockNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ModelControl::ModelControl(const repository::ModelScanner& scanner, LifeCycle& life_cycle,
                           ModelControlOptions options)
    : scanner_(scanner), life_cycle_(life_cycle), options_(std::move(options)) {}

template <typename MakePlan>
std::optional<ModelPlan> ModelControl::Begin(MakePlan make_plan) {
  while (true) {
    ModelInfos now;
    {
      base::MutexLock lock(mutex_);
      if (is_stopping_) return std::nullopt;
      ++operations_;
      now = infos_;
    }
    ModelPlan plan = make_plan(now);
    base::MutexLock lock(mutex_);
    ModelInfos next = ApplyPlan(infos_, plan);
    const bool is_busy = Concerns(plan, busy_);
    if (!is_busy && IsCurrent(plan, now, infos_)) {
      CommitLocked(plan, next);
      return plan;
    }
    --operations_;
    ended_.NotifyAll();
    while (Concerns(plan, busy_) && !is_stopping_) ended_.Wait(mutex_);
  }
}

std::optional<ModelPlan> ModelControl::BeginUnload(const std::string& name, bool with_parts,
                                                   bool only_idle) {
  ModelInfos next;  // later what was known before, which ends without the lock
  base::MutexLock lock(mutex_);
  while (!is_stopping_) {
    ModelPlan plan = PlanUnload(name, with_parts, infos_);
    // A model on demand has rules also while it is not loaded.
    if (!only_idle && options_.mode == ControlMode::kOnDemand) plan.removed.insert(name);
    next = ApplyPlan(infos_, plan);
    if (!Concerns(plan, busy_)) {
      // Models that are held without being unloaded would stay closed, so nothing may come between.
      if (only_idle && !life_cycle_.HoldIdle(plan.removed)) return std::nullopt;
      plan.keeps_rules = only_idle;
      ++operations_;
      CommitLocked(plan, next);
      return plan;
    }
    ended_.Wait(mutex_);
  }
  return std::nullopt;
}

void ModelControl::CommitLocked(ModelPlan& plan, ModelInfos& infos) {
  infos_.swap(infos);
  plan.infos.clear();
  for (const ModelId& id : plan.changed) infos_.at(id).revision = ++last_revision_;
  for (const ModelId& id : plan.touched) refused_.erase(id);
  for (const ModelId& id : plan.affected) refused_.erase(id);
  for (const auto& [id, reason] : plan.refused) refused_[id] = reason;
  busy_.merge(Claims(plan));
  std::set<ModelId> named;
  for (const auto& [id, info] : infos_) named.insert(id);
  life_cycle_.SetNamed(std::move(named));
}

void ModelControl::End(const ModelPlan& plan) {
  base::MutexLock lock(mutex_);
  for (const ModelId& id : Claims(plan)) busy_.erase(id);
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
  const bool loads_by_name = LoadsByName() && !options_.startup_models.contains(kAllModels);
  std::optional<ModelPlan> plan;
  if (loads_by_name) {
    const LoadOrder order{.names = options_.startup_models};
    plan = Begin([&](const ModelInfos& now) { return PlanLoad(scanner_, order, now); });
  } else {
    if (options_.startup_models.size() > 1) {
      return base::InvalidArgumentError(
          "Wildcard model name '*' must be the ONLY startup model if specified at all.");
    }
    plan = Begin([this](const ModelInfos& now) { return PlanPoll(scanner_, now); });
  }
  if (!plan) return FailedToLoadAll();
  Execute(*plan);
  base::Status status;
  if (loads_by_name) status = CheckLoaded(options_.startup_models, *plan);
  End(*plan);
  NEREID_RETURN_IF_ERROR(status);
  if (!plan->all_polled) return FailedToLoadAll();
  return CheckAllReady();
}

bool ModelControl::LoadsByName() const {
  return options_.mode == ControlMode::kExplicit || options_.mode == ControlMode::kOnDemand;
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
  const std::optional<ModelPlan> plan =
      Begin([this](const ModelInfos& now) { return PlanPoll(scanner_, now); });
  if (!plan) return;
  if (!plan->affected.empty()) Execute(*plan);
  End(*plan);
}

base::Status ModelControl::Load(const std::string& name, const service::LoadOptions& options) {
  if (!LoadsByName()) {
    return NotExplicit();
  }
  NEREID_RETURN_IF_ERROR(config::ValidateModelName(name));
  const LoadOrder order{.names = {name},
                        .options = options,
                        .files = FilesOf(options),
                        .wall_time_ns = WallClockNs()};
  const std::optional<ModelPlan> plan =
      Begin([&](const ModelInfos& now) { return PlanLoad(scanner_, order, now); });
  if (!plan) return base::UnavailableError("Server not ready");
  if (!plan->affected.empty()) Execute(*plan);
  // Checked before End: an unload that waits for this load could otherwise hide its failure.
  base::Status status = CheckLoad(name, *plan);
  End(*plan);
  return status;
}

base::Status ModelControl::CheckLoad(const std::string& name, const ModelPlan& plan) const {
  NEREID_RETURN_IF_ERROR(CheckLoaded({name}, plan));
  if (!plan.all_polled) return FailedToPoll(name, plan);
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

base::Status ModelControl::CheckLoaded(const std::set<std::string>& names,
                                       const ModelPlan& plan) const {
  std::string text;
  base::MutexLock lock(mutex_);
  for (const auto& [id, info] : infos_) {
    if (!names.contains(id.name) || info.load_status.ok()) continue;
    // If there is nothing new to load, served models stay served and failed ones stay failed.
    const bool is_tried = plan.affected.contains(id);
    const bool is_left = plan.touched.contains(id) && life_cycle_.LoadedModel(id, -1) == nullptr;
    if (!is_tried && !is_left) continue;
    text += fmt::format("load failed for model '{}': {}\n", id.Text(), info.load_status.message());
  }
  return text.empty() ? base::OkStatus() : base::InvalidArgumentError(std::move(text));
}

base::Status ModelControl::Unload(const std::string& name, bool with_parts) {
  if (!LoadsByName()) {
    return NotExplicit();
  }
  // Without this, the unload would wait for a load that is no longer wanted.
  life_cycle_.CancelLoads(name);
  const std::optional<ModelPlan> plan = BeginUnload(name, with_parts, /*only_idle=*/false);
  if (!plan) return base::UnavailableError("Server not ready");
  if (!plan->affected.empty()) Execute(*plan);
  End(*plan);
  return base::OkStatus();
}

std::set<ModelId> ModelControl::UnloadIdle(const std::string& name) {
  const std::optional<ModelPlan> plan = BeginUnload(name, /*with_parts=*/true, /*only_idle=*/true);
  if (!plan) return {};
  if (!plan->affected.empty()) Execute(*plan);
  End(*plan);
  return plan->removed;
}

std::set<std::string> ModelControl::PartsOf(const std::string& name) const {
  std::set<std::string> parts;
  base::MutexLock lock(mutex_);
  std::vector<std::string> names = {name};
  while (!names.empty()) {
    const auto info = infos_.find(ModelId{std::string(), names.back()});
    names.pop_back();
    if (info == infos_.end() || !info->second.source->config.ok()) continue;
    const config::Ensembling* const ensemble = info->second.source->config->ensemble_scheduling();
    if (ensemble == nullptr) continue;
    for (const config::Ensembling::Step& step : ensemble->step) {
      if (parts.insert(step.model_name).second) names.push_back(step.model_name);
    }
  }
  return parts;
}

bool ModelControl::IsOverridden(const std::string& name) const {
  base::MutexLock lock(mutex_);
  const auto info = infos_.find(ModelId{std::string(), name});
  return info != infos_.end() && info->second.is_overridden;
}

std::vector<service::IndexEntry> ModelControl::Index(bool only_ready) const {
  const repository::Listing listing = scanner_.List();
  const ModelTable& table = life_cycle_.Table();
  std::map<ModelId, std::string> reasons;
  {
    base::MutexLock lock(mutex_);
    reasons = refused_;
    for (const auto& [id, info] : infos_) {
      reasons.try_emplace(id, info.load_status.message());
    }
  }
  return MakeIndex(listing, table, reasons, only_ready);
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
    ModelInfo& info = infos_.at(id);
    info.is_invalid = true;
    info.load_status = std::move(status);
    is_new = std::exchange(info.told, text) != text || options_.mode != ControlMode::kPoll;
  }
  if (is_new) NEREID_LOG(kError, "{}", text);
}

void ModelControl::SetValid(const ModelId& id) {
  base::MutexLock lock(mutex_);
  ModelInfo& info = infos_.at(id);
  info.is_invalid = false;
  info.load_status = base::OkStatus();
}

void ModelControl::Execute(const ModelPlan& plan) {
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
  LoadEnsembles(ensembles, plan);
}

void ModelControl::UnloadLost(const std::vector<EnsembleEntry>& ensembles, const ModelPlan& plan) {
  std::set<ModelId> lost = plan.removed;
  for (const EnsembleEntry& entry : ensembles) {
    SetValid(entry.id);
    base::Status status = entry.status;
    for (const auto& [part, versions] : entry.models) {
      if (!status.ok()) break;
      base::MutexLock lock(mutex_);
      const ModelInfo& info = infos_.at(part);
      if (info.is_invalid) status = PartIsInvalid(entry.id, part, info);
    }
    if (status.ok()) continue;
    SetInvalid(entry.id, std::move(status));
    lost.insert(entry.id);
  }
  using enum LifeCycle::Rules;
  life_cycle_.Unload(lost, plan.keeps_rules ? kKept : kForgotten);
}

void ModelControl::RunJobs(std::vector<LoadJob> jobs) {
  std::vector<ModelId> ids;
  for (const LoadJob& job : jobs) ids.push_back(job.source->id());
  std::vector<base::Status> results = life_cycle_.Load(std::move(jobs));
  base::MutexLock lock(mutex_);
  for (size_t i = 0; i < ids.size(); ++i) {
    ModelInfo& info = infos_.at(ids[i]);
    // The next scan must find the same change again.
    if (!results[i].ok()) {
      info.timestamp = info.previous;
      info.is_overridden = info.was_overridden;
      auto source = std::make_shared<repository::ModelSource>(*info.source);
      source->files.reset();  // nothing was loaded from them
      info.source = std::move(source);
      info.revision = ++last_revision_;
    }
    if (results[i].ok()) info.told.clear();
    info.load_status = std::move(results[i]);
  }
}

void ModelControl::LoadPlain(const ModelPlan& plan) {
  std::vector<LoadJob> jobs;
  for (const ModelId& id : plan.changed) {
    LoadJob job{.source = SourceOf(id), .parts = {}};
    if (job.source->config->ensemble_scheduling() == nullptr) jobs.push_back(std::move(job));
  }
  RunJobs(std::move(jobs));
}

void ModelControl::LoadEnsembles(const std::vector<EnsembleEntry>& ensembles,
                                 const ModelPlan& plan) {
  // Invalid ensembles are unloaded together at the end: a request in an outer ensemble still needs
  // the inner one.
  std::set<ModelId> lost;
  for (size_t i = 0; i < ensembles.size();) {
    const int depth = ensembles[i].depth;
    std::vector<LoadJob> jobs;
    for (; i < ensembles.size() && ensembles[i].depth == depth; ++i) {
      const EnsembleEntry& entry = ensembles[i];
      if (!entry.status.ok()) continue;
      base::Result<LoadJob> job = PrepareEnsemble(entry);
      if (!job.ok()) {
        SetInvalid(entry.id, job.status());
        lost.insert(entry.id);
        continue;
      }
      // A model that could not be replaced has stayed. Polling tries it again and again, which must
      // not replace the ensembles around it each time.
      if (!plan.changed.contains(entry.id) && life_cycle_.HasSameParts(*job)) continue;
      jobs.push_back(*std::move(job));
    }
    RunJobs(std::move(jobs));
  }
  // An ensemble keeps its rules, because it is loaded again once its parts are.
  life_cycle_.Unload(lost, LifeCycle::Rules::kKept);
}

base::Status ModelControl::CheckPart(const EnsembleEntry& entry, const ModelId& part,
                                     const std::set<int64_t>& versions) const {
  const std::string start =
      fmt::format("ensemble '{}' depends on '{}' ", entry.id.Text(), part.Text());
  {
    base::MutexLock lock(mutex_);
    const ModelInfo& info = infos_.at(part);
    if (info.is_invalid) return PartIsInvalid(entry.id, part, info);
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
  return MakeEnsembleJob(*SourceOf(entry.id), entry, [this](const ModelId& id, int64_t version) {
    return life_cycle_.LoadedModel(id, version);
  });
}

}  // namespace nereid::engine
