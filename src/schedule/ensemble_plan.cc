// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/core.h>

namespace nereid::schedule {
namespace {

void AddOnce(std::vector<uint32_t>& list, uint32_t value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

base::Status MixedGroupsError(const std::string& ensemble, const std::string& model) {
  return base::InvalidArgumentError(
      fmt::format("in ensemble {}, step of model '{}' receives inputs originated from different "
                  "decoupled models",
                  ensemble, model));
}

}  // namespace

uint32_t EnsemblePlan::TensorIndex(NameIndex& index, const std::string& name) {
  const auto [entry, is_new] = index.try_emplace(name, static_cast<uint32_t>(tensors_.size()));
  if (is_new) tensors_.push_back({.name = name, .consumers = {}});
  return entry->second;
}

void EnsemblePlan::AddSteps(const config::Ensembling& ensemble,
                            const std::vector<StepModel>& models, NameIndex& index) {
  for (uint32_t i = 0; i < ensemble.step.size(); ++i) {
    const config::Ensembling::Step& from = ensemble.step[i];
    EnsembleStep& step = steps_.emplace_back();
    step.model_name = from.model_name;
    step.model_id = from.model_namespace.empty() ? from.model_name
                                                 : from.model_namespace + "::" + from.model_name;
    step.model_version = from.model_version;
    step.is_decoupled = models[i].is_decoupled;
    for (const auto& [model_input, name] : from.input_map) {
      const uint32_t tensor = TensorIndex(index, name);
      step.inputs.push_back({model_input, tensor});
      AddOnce(step.input_tensors, tensor);
      AddOnce(tensors_[tensor].consumers, i);
    }
    for (const auto& [model_output, name] : from.output_map) {
      const uint32_t tensor = TensorIndex(index, name);
      step.outputs.push_back({model_output, tensor});
      tensors_[tensor].producer = i;
    }
  }
  for (EnsembleStep& step : steps_) {
    for (const uint32_t tensor : step.input_tensors) {
      if (tensors_[tensor].producer != kNoStep) AddOnce(step.producers, tensors_[tensor].producer);
    }
  }
}

void EnsemblePlan::FindBehind() {
  for (EnsembleStep& first : steps_) {
    std::vector<bool> is_seen(steps_.size());
    std::vector<const EnsembleStep*> open{&first};
    while (!open.empty()) {
      const EnsembleStep& step = *open.back();
      open.pop_back();
      for (const EnsembleBinding& output : step.outputs) {
        for (const uint32_t next : tensors_[output.tensor].consumers) {
          if (is_seen[next]) continue;
          is_seen[next] = true;
          first.behind.push_back(next);
          open.push_back(&steps_[next]);
        }
      }
    }
  }
}

void EnsemblePlan::FindWaiting(const std::vector<StepModel>& models) {
  // The threads of all these models may send the responses of a step, or be needed by it.
  std::vector<std::set<std::string_view>> ids(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    ids[i].insert(steps_[i].model_id);
    ids[i].insert(models[i].parts.begin(), models[i].parts.end());
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    EnsembleStep& step = steps_[i];
    const auto has_common = [&ids, i](uint32_t next) {
      return std::ranges::any_of(ids[i], [&](auto id) { return ids[next].contains(id); });
    };
    // The line of the rate limiter ends for all at the first who lacks a resource, so that any
    // model may need what another one holds.
    step.may_wait = step.is_decoupled && !models[i].holds_resources &&
                    std::ranges::none_of(step.behind, has_common);
    if (!step.may_wait) continue;
    step.waits.waiting.assign(ids[i].begin(), ids[i].end());
    for (const uint32_t next : step.behind) {
      step.waits.behind.insert(step.waits.behind.end(), ids[next].begin(), ids[next].end());
    }
  }
}

base::Status EnsemblePlan::FindGroups(const std::string& ensemble) {
  std::vector<std::optional<uint32_t>> known(tensors_.size());
  for (const uint32_t tensor : input_tensors_) known[tensor] = 0;
  std::vector<bool> is_done(steps_.size());
  uint32_t last_group = 0;
  // Each pass settles at least one step that can be reached; the others never start.
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      EnsembleStep& step = steps_[i];
      const auto is_known = [&](uint32_t tensor) { return known[tensor].has_value(); };
      if (is_done[i] || !std::ranges::all_of(step.input_tensors, is_known)) continue;
      is_done[i] = progress = true;
      step.group = *known[step.input_tensors.front()];
      for (const uint32_t tensor : step.input_tensors) {
        if (*known[tensor] == step.group) continue;
        // Triton's text names the declaration of the tensor that cannot be produced.
        const bool is_declared_here = tensors_[step.outputs.front().tensor].output >= 0;
        return MixedGroupsError(ensemble, is_declared_here ? ensemble : step.model_name);
      }
      step.output_group = step.is_decoupled ? ++last_group : step.group;
      for (const EnsembleBinding& output : step.outputs) known[output.tensor] = step.output_group;
    }
  }
  is_decoupled_ = last_group > 0;
  std::vector<uint32_t> groups(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) groups[i] = known[i].value_or(0);
  return FindOutputGroup(ensemble, groups);
}

base::Status EnsemblePlan::FindOutputGroup(const std::string& ensemble,
                                           const std::vector<uint32_t>& groups) {
  output_group_ = output_tensors_.empty() ? 0 : groups[output_tensors_.front()];
  for (const uint32_t tensor : output_tensors_) {
    if (groups[tensor] != output_group_) return MixedGroupsError(ensemble, ensemble);
  }
  return base::OkStatus();
}

base::Result<EnsemblePlan> EnsemblePlan::Compile(const config::ModelConfig& config,
                                                 const std::vector<StepModel>& models) {
  const config::Ensembling& ensemble = *config.ensemble_scheduling();
  EnsemblePlan plan;
  NameIndex index;
  for (const config::ModelInput& input : config.input) {
    plan.input_tensors_.push_back(plan.TensorIndex(index, input.name));
  }
  for (const config::ModelOutput& output : config.output) {
    const uint32_t tensor = plan.TensorIndex(index, output.name);
    plan.tensors_[tensor].output = static_cast<int>(plan.output_tensors_.size());
    plan.output_tensors_.push_back(tensor);
  }
  plan.AddSteps(ensemble, models, index);
  NEREID_RETURN_IF_ERROR(plan.FindGroups(config.name));
  plan.FindBehind();
  plan.FindWaiting(models);
  plan.max_inflight_requests_ = ensemble.max_inflight_requests;
  plan.all_.outputs.assign(config.output.size(), 1);
  plan.Prune(plan.all_);
  return plan;
}

void EnsemblePlan::Prune(EnsembleNeeds& needs) const {
  needs.steps.assign(steps_.size(), 0);
  needs.readers.assign(steps_.size(), 0);
  needs.output_count = 0;
  // Steps are marked backwards from the outputs; a mark is set once, so this ends.
  std::vector<uint32_t> marked;
  const auto mark = [&](uint32_t step) {
    if (step == kNoStep || needs.steps[step] != 0) return;
    needs.steps[step] = 1;
    marked.push_back(step);
  };
  for (size_t i = 0; i < output_tensors_.size(); ++i) {
    if (needs.outputs[i] == 0) continue;
    ++needs.output_count;
    mark(tensors_[output_tensors_[i]].producer);
  }
  while (!marked.empty()) {
    const EnsembleStep& step = steps_[marked.back()];
    marked.pop_back();
    for (const uint32_t producer : step.producers) mark(producer);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (needs.steps[i] == 0) continue;
    for (const uint32_t producer : steps_[i].producers) ++needs.readers[producer];
    for (const EnsembleBinding& output : steps_[i].outputs) {
      const int position = tensors_[output.tensor].output;
      if (position >= 0 && needs.outputs[static_cast<size_t>(position)] != 0) ++needs.readers[i];
    }
  }
}

}  // namespace nereid::schedule
