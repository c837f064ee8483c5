// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/model_repository_manager/model_repository_manager.cc of Triton.
#include "engine/ensemble_order.h"

#include <algorithm>

#include <fmt/core.h>

namespace nereid::engine {
namespace {

using Entries = std::map<std::string, EnsembleEntry>;

// Names the model of the first step that has none.
base::Status CheckModelsExist(const config::ModelConfig& config,
                              const std::map<std::string, repository::ModelSource>& sources) {
  for (const config::Ensembling::Step& step : config.ensemble_scheduling()->step) {
    const auto found = sources.find(step.model_name);
    if (found != sources.end() && found->second.config.ok()) continue;
    return base::InvalidArgumentError(
        fmt::format("ensemble {} contains models that are not available or ambiguous: {}",
                    config.name, step.model_name));
  }
  return base::OkStatus();
}

Entries ReadEnsembles(const std::map<std::string, repository::ModelSource>& sources) {
  Entries entries;
  for (const auto& [name, source] : sources) {
    if (!source.config.ok() || source.config->ensemble_scheduling() == nullptr) continue;
    EnsembleEntry& entry = entries[name];
    entry.name = name;
    for (const config::Ensembling::Step& step : source.config->ensemble_scheduling()->step) {
      entry.models[step.model_name].insert(step.model_version);
    }
    entry.status = CheckModelsExist(*source.config, sources);
  }
  return entries;
}

// Moves the ensembles whose own ensembles are all in `ordered` there; how often it did.
size_t MoveReady(Entries& open, std::map<std::string, int>& depths,
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
                      entry.name, kMaxEnsembleDepth));
    }
    depths[entry.name] = entry.depth;
    ordered.push_back(std::move(entry));
    it = open.erase(it);
    ++moved;
  }
  return moved;
}

// A way from `start` back to itself, without `start` at the end; empty when there is none.
std::vector<std::string> FindCycle(const Entries& open, const std::string& start) {
  std::map<std::string, std::string> came_from;
  std::vector<std::string> frontier{start};
  while (!frontier.empty()) {
    const std::string name = frontier.back();
    frontier.pop_back();
    for (const auto& [next, versions] : open.at(name).models) {
      if (next == start) {
        std::vector<std::string> way{name};
        while (way.back() != start) way.push_back(came_from.at(way.back()));
        std::ranges::reverse(way);
        return way;
      }
      if (open.contains(next) && came_from.try_emplace(next, name).second) frontier.push_back(next);
    }
  }
  return {};
}

// All of a circle fail in the words of the first of them, but for the last, which closes it.
void FailCycles(Entries& open) {
  for (auto& [name, entry] : open) {
    if (!entry.status.ok()) continue;
    const std::vector<std::string> cycle = FindCycle(open, name);
    if (cycle.empty()) continue;
    const base::Status status = base::InvalidArgumentError(
        fmt::format("circular dependency between ensembles: {} -> ... -> {} -> {}", name,
                    cycle.back(), name));
    entry.status = status;
    for (size_t i = 1; i + 1 < cycle.size(); ++i) {
      EnsembleEntry& between = open.at(cycle[i]);
      if (between.status.ok()) between.status = status;
    }
  }
}

}  // namespace

std::vector<EnsembleEntry> OrderEnsembles(
    const std::map<std::string, repository::ModelSource>& sources) {
  Entries open = ReadEnsembles(sources);
  std::map<std::string, int> depths;
  std::vector<EnsembleEntry> ordered;
  while (!open.empty()) {
    // What is left when nothing moves is in a circle, or contains one that is.
    if (MoveReady(open, depths, ordered) == 0) FailCycles(open);
  }
  return ordered;
}

}  // namespace nereid::engine
