// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/model_repository_manager/model_repository_manager.cc.
#include "engine/ensemble_order.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/nearest_name.h"

namespace nereid::engine {
namespace {

using Entries = std::map<ModelId, EnsembleEntry>;

// Suggests the model that a step probably means, or nothing if several have that name.
std::string DidYouMean(const ModelSources& sources, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [id, source] : sources) names.push_back(id.name);
  return std::ranges::find(names, name) == names.end() ? base::DidYouMean(name, names)
                                                       : std::string();
}

Entries ReadEnsembles(const ModelSources& sources) {
  Entries entries;
  for (const auto& [id, source] : sources) {
    const config::Ensembling* const ensemble = source->config->ensemble_scheduling();
    if (ensemble == nullptr) continue;
    EnsembleEntry& entry = entries[id];
    entry.id = id;
    for (const config::Ensembling::Step& step : ensemble->step) {
      const std::optional<ModelId> model = FindStepModel(sources, id.name_space, step.model_name);
      if (model) {
        entry.steps.push_back(*model);
        entry.models[*model].insert(step.model_version);
      } else if (entry.status.ok()) {
        entry.status = base::InvalidArgumentError(
            fmt::format("ensemble {} contains models that are not available or ambiguous: {}{}",
                        id.Text(), step.model_name, DidYouMean(sources, step.model_name)));
      }
    }
  }
  return entries;
}

// Moves the ensembles whose inner ensembles are all in `ordered` to `ordered`. Returns how many
// were moved.
size_t MoveReady(Entries& open, std::map<ModelId, int>& depths,
                 std::vector<EnsembleEntry>& ordered) {
  size_t moved = 0;
  for (auto it = open.begin(); it != open.end();) {
    EnsembleEntry& entry = it->second;
    const bool waits = std::ranges::any_of(
        entry.models, [&](const auto& model) { return open.contains(model.first); });
    if (waits && entry.status.ok()) {
      ++it;
      continue;
    }
    for (const auto& [model, versions] : entry.models) {
      const auto inner = depths.find(model);
      if (inner != depths.end()) entry.depth = std::max(entry.depth, inner->second + 1);
    }
    if (entry.depth > kMaxEnsembleDepth && entry.status.ok()) {
      entry.status = base::InvalidArgumentError(
          fmt::format("ensemble '{}' contains ensembles that are nested more than {} deep",
                      entry.id.Text(), kMaxEnsembleDepth));
    }
    depths[entry.id] = entry.depth;
    ordered.push_back(std::move(entry));
    it = open.erase(it);
    ++moved;
  }
  return moved;
}

// Returns a path from `start` back to itself, without `start` at the end; empty if there is none.
std::vector<ModelId> FindCycle(const Entries& open, const ModelId& start) {
  std::map<ModelId, ModelId> came_from;
  std::vector<ModelId> frontier{start};
  while (!frontier.empty()) {
    const ModelId id = frontier.back();
    frontier.pop_back();
    for (const auto& [next, versions] : open.at(id).models) {
      if (next == start) {
        std::vector<ModelId> way{id};
        while (way.back() != start) way.push_back(came_from.at(way.back()));
        std::ranges::reverse(way);
        return way;
      }
      if (open.contains(next) && came_from.try_emplace(next, id).second) frontier.push_back(next);
    }
  }
  return {};
}

// Fails the ensembles of each cycle with the message of the first one, except the last, which
// closes the cycle and has its own message.
void FailCycles(Entries& open) {
  for (auto& [id, entry] : open) {
    if (!entry.status.ok()) continue;
    const std::vector<ModelId> cycle = FindCycle(open, id);
    if (cycle.empty()) continue;
    const base::Status status = base::InvalidArgumentError(
        fmt::format("circular dependency between ensembles: {} -> ... -> {} -> {}", id.Text(),
                    cycle.back().Text(), id.Text()));
    entry.status = status;
    for (size_t i = 1; i + 1 < cycle.size(); ++i) {
      EnsembleEntry& between = open.at(cycle[i]);
      if (between.status.ok()) between.status = status;
    }
  }
}

}  // namespace

std::optional<ModelId> FindStepModel(const ModelSources& sources, const std::string& name_space,
                                     const std::string& model_name) {
  ModelId own(name_space, model_name);
  if (sources.contains(own)) return own;
  if (name_space.empty()) return std::nullopt;
  std::optional<ModelId> found;
  for (const auto& [id, source] : sources) {
    if (id.name != model_name) continue;
    if (found) return std::nullopt;
    found = id;
  }
  return found;
}

std::vector<ModelId> StepModels(const ModelSources& sources,
                                const repository::ModelSource& source) {
  std::vector<ModelId> models;
  const config::Ensembling* const ensemble = source.config->ensemble_scheduling();
  if (ensemble == nullptr) return models;
  for (const config::Ensembling::Step& step : ensemble->step) {
    if (auto model = FindStepModel(sources, source.name_space, step.model_name)) {
      models.push_back(*std::move(model));
    }
  }
  return models;
}

std::vector<EnsembleEntry> OrderEnsembles(const ModelSources& sources) {
  Entries open = ReadEnsembles(sources);
  std::map<ModelId, int> depths;
  std::vector<EnsembleEntry> ordered;
  while (!open.empty()) {
    // If nothing moves, the remaining ensembles are in a cycle or contain one that is.
    if (MoveReady(open, depths, ordered) == 0) FailCycles(open);
  }
  return ordered;
}

}  // namespace nereid::engine
