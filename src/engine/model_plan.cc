// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/model_repository_manager/model_repository_manager.cc.
#include "engine/model_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/temporary_folder.h"
#include "config/paths.h"
#include "repository/changes.h"

namespace nereid::engine {
namespace {

// Adds a load of `source` to the plan. `is_overridden`: something of it came with the load request.
void Accept(repository::ModelSource source, repository::ModelTimestamp timestamp,
            bool is_overridden, const ModelInfos& now, ModelPlan& plan) {
  const ModelId id = source.id();
  const auto known = now.find(id);
  ModelInfo info;
  info.source = std::make_shared<const repository::ModelSource>(std::move(source));
  info.timestamp = std::move(timestamp);
  info.is_overridden = is_overridden;
  if (known != now.end()) {
    info.previous = known->second.timestamp;
    info.was_overridden = known->second.is_overridden;
  }
  plan.infos[id] = std::move(info);
  plan.changed.insert(id);
}

// Scans the models of one name in the repositories.
void PollName(const repository::ModelScanner& scanner, const std::string& name,
              const std::optional<std::string>& config, int64_t wall_time_ns, const ModelInfos& now,
              ModelPlan& plan) {
  std::vector<repository::ModelPlace> places;
  if (config::ValidateModelName(name).ok()) places = scanner.Find(name);
  if (places.empty()) {
    plan.all_polled = false;
    plan.missing.insert(name);
  }
  for (const repository::ModelPlace& place : places) {
    const auto known = now.find(place.id);
    const bool is_known = known != now.end();
    if (is_known && !config && known->second.source->repository == place.repository &&
        !known->second.timestamp.IsOlderThan(scanner.TimestampOf(place))) {
      plan.touched.insert(place.id);
      continue;
    }
    repository::ModelSource source = scanner.Examine(place, {.config_json = config});
    if (!source.config.ok()) {
      plan.all_polled = false;
      plan.refused[place.id] = std::string(source.config.status().message());
      if (is_known) plan.touched.insert(place.id);
      continue;
    }
    repository::ModelTimestamp timestamp = source.timestamp;
    // The configuration file takes effect again only if it is newer than the load request.
    if (config) timestamp.SetConfigTime(wall_time_ns);
    Accept(std::move(source), std::move(timestamp), config.has_value(), now, plan);
  }
}

// Scans a model whose files are part of the load request.
void PollFiles(const repository::ModelScanner& scanner, const std::string& name,
               const LoadOrder& order, const ModelInfos& now, ModelPlan& plan) {
  base::Status status = order.files.status();
  if (status.ok()) {
    const std::shared_ptr<repository::PrivateFolder>& folder = *order.files;
    repository::ModelSource source = scanner.Examine(
        {.id = {std::string(), name}, .repository = {}, .folder = folder->path(), .files = folder},
        {.config_json = order.options.config});
    // There is no timestamp, so that a load without files brings back the model in the repository.
    if (source.config.ok()) {
      return Accept(std::move(source), {}, /*is_overridden=*/true, now, plan);
    }
    const std::string reason(source.config.status().message());
    plan.refused[name] = base::HideTemporaryFolder(reason, folder->path(), name);
  } else {
    NEREID_LOG(kError, "Poll failed for model directory '{}': {}", name, status.message());
    plan.refused[name] = std::string(status.message());
  }
  plan.all_polled = false;
  if (now.contains(name)) plan.touched.insert(name);
}

// Returns the names of models in the steps of the plan's ensembles among `names`, without those
// already in `seen`.
std::set<std::string> NewParts(const ModelPlan& plan, const std::set<std::string>& names,
                               std::set<std::string>& seen) {
  std::set<std::string> parts;
  for (const auto& [id, info] : plan.infos) {
    const config::Ensembling* const ensemble = info.source->config->ensemble_scheduling();
    if (ensemble == nullptr || !names.contains(id.name)) continue;
    for (const config::Ensembling::Step& step : ensemble->step) {
      if (seen.insert(step.model_name).second) parts.insert(step.model_name);
    }
  }
  return parts;
}

bool ContainsAny(const std::set<ModelId>& ids, const auto& some) {
  return std::ranges::any_of(some, [&](const ModelId& id) { return ids.contains(id); });
}

// Adds to `affected` the ensembles that contain any of its models, or whose steps refer to other
// models than before.
void AddEnsembles(const ModelSources& before, const ModelSources& after,
                  std::set<ModelId>& affected) {
  for (bool is_growing = true; is_growing;) {
    is_growing = false;
    for (const auto& [id, source] : after) {
      if (source->config->ensemble_scheduling() == nullptr || affected.contains(id)) continue;
      const std::vector<ModelId> parts = StepModels(after, *source);
      if (parts != StepModels(before, *source) || ContainsAny(affected, parts)) {
        affected.insert(id);
        is_growing = true;
      }
    }
  }
}

}  // namespace

ModelSources SourcesOf(const ModelInfos& infos) {
  ModelSources sources;
  for (const auto& [id, info] : infos) sources.emplace_hint(sources.end(), id, info.source);
  return sources;
}

ModelPlan PlanPoll(const repository::ModelScanner& scanner, const ModelInfos& now) {
  repository::KnownModels known;
  for (const auto& [id, info] : now) known[id] = {info.source->repository, info.timestamp};
  repository::ScanResult scan = scanner.ScanAll(known);
  repository::Changes changes = repository::Compare(known, scan);
  ModelPlan plan{.infos = now};
  plan.removed = std::move(changes.removed);
  for (const ModelId& id : plan.removed) plan.infos.erase(id);
  for (auto& [id, source] : scan.models) {
    if (changes.added.contains(id) || changes.modified.contains(id)) {
      repository::ModelTimestamp timestamp = source.timestamp;
      Accept(std::move(source), std::move(timestamp), /*is_overridden=*/false, now, plan);
    } else {
      plan.refused[id] = std::string(source.config.status().message());
    }
  }
  plan.all_polled = plan.refused.empty() && scan.unreadable_repositories.empty();
  return plan;
}

ModelPlan PlanLoad(const repository::ModelScanner& scanner, const LoadOrder& order,
                   const ModelInfos& now) {
  ModelPlan plan{.infos = now};
  std::set<std::string> seen = order.names;
  for (std::set<std::string> round = order.names; !round.empty();) {
    for (const std::string& name : round) {
      const bool is_named = order.names.contains(name);
      if (is_named && !order.options.files.empty()) {
        PollFiles(scanner, name, order, now, plan);
      } else {
        PollName(scanner, name, is_named ? order.options.config : std::nullopt, order.wall_time_ns,
                 now, plan);
      }
    }
    // The next round scans the parts of the ensembles in this one.
    round = NewParts(plan, round, seen);
  }
  for (auto& [id, info] : plan.infos) {
    const auto known = now.find(id);
    const bool was_wanted = known != now.end() && known->second.is_wanted;
    info.is_wanted = was_wanted || order.names.contains(id.name);
  }
  return plan;
}

ModelPlan PlanUnload(const std::string& name, bool with_parts, const ModelInfos& now) {
  ModelPlan plan{.infos = now};
  for (const auto& [id, info] : now) {
    if (id.name == name) plan.removed.insert(id);
  }
  for (const ModelId& id : plan.removed) plan.infos.erase(id);
  const ModelSources before = SourcesOf(now);
  for (bool is_growing = with_parts; is_growing;) {
    is_growing = false;
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

ModelInfos ApplyPlan(const ModelInfos& now, ModelPlan& plan) {
  ModelInfos next = now;
  for (const ModelId& id : plan.removed) next.erase(id);
  for (const ModelId& id : plan.changed) next[id] = plan.infos.at(id);
  for (const ModelId& id : plan.touched) {
    const auto known = next.find(id);
    if (known != next.end()) known->second.is_wanted |= plan.infos.at(id).is_wanted;
  }
  plan.affected = plan.changed;
  plan.affected.insert(plan.removed.begin(), plan.removed.end());
  plan.held.clear();
  if (plan.affected.empty()) return next;
  const ModelSources before = SourcesOf(now);
  for (const ModelId& id : plan.affected) {
    const auto source = before.find(id);
    if (source == before.end()) continue;
    for (ModelId& part : StepModels(before, *source->second)) plan.held.insert(std::move(part));
  }
  AddEnsembles(before, SourcesOf(next), plan.affected);
  return next;
}

bool IsCurrent(const ModelPlan& plan, const ModelInfos& then, const ModelInfos& now) {
  const auto revision = [](const ModelInfos& infos, const ModelId& id) {
    const auto info = infos.find(id);
    return info == infos.end() ? 0 : info->second.revision;
  };
  const auto is_current = [&](const ModelId& id) {
    return revision(now, id) == revision(then, id);
  };
  return std::ranges::all_of(plan.changed, is_current) &&
         std::ranges::all_of(plan.removed, is_current) &&
         std::ranges::all_of(plan.touched, is_current);
}

std::set<ModelId> Claims(const ModelPlan& plan) {
  std::set<ModelId> claims = plan.affected;
  claims.insert(plan.touched.begin(), plan.touched.end());
  claims.insert(plan.held.begin(), plan.held.end());
  return claims;
}

bool Concerns(const ModelPlan& plan, const std::set<ModelId>& ids) {
  return ContainsAny(ids, Claims(plan));
}

}  // namespace nereid::engine
