// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <map>
#include <set>

#include <fmt/format.h>

#include "config/complete.h"
#include "config/validate_parts.h"

namespace nereid::config {
namespace {

// The tensors of one ensemble and their dependencies. Nodes are identified by name; the map keeps
// their addresses stable.
class EnsembleGraph {
 public:
  EnsembleGraph(const ModelConfig& config, ErrorList& errors)
      : config_(config), ensemble_(*config.ensemble_scheduling()), errors_(errors) {}

  void Run() {
    bool complete = true;
    for (size_t i = 0; i < ensemble_.step.size(); ++i) complete = Step(i) && complete;
    // If a step is incomplete, errors of the graph would be noise.
    if (!complete) return;
    MarkReady();
    Outputs();
    UnusedTensors();
  }

 private:
  // One tensor of the ensemble.
  struct Node {
    bool is_output = false;  // a step produces it
    bool ready = false;      // an ensemble input, or all its sources are ready
    std::vector<std::string_view> sources;
    std::vector<std::string_view> users;
  };

  void Add(std::string text, std::string field, std::string found, std::string expected,
           std::string_view kind) {
    errors_.Add(
        {kInvalid, std::move(text), std::move(field), std::move(found), std::move(expected), kind});
  }

  bool StepIsComplete(size_t i) {
    const Ensembling::Step& step = ensemble_.step[i];
    bool complete = true;
    const auto require = [&](bool given, std::string_view member) {
      if (given) return;
      complete = false;
      Add(fmt::format("must specify '{}' in step {} of ensemble '{}'", member, i, config_.name),
          fmt::format("ensemble_scheduling.step[{}].{}", i, member), "nothing",
          fmt::format("'{}'", member), "step-incomplete");
    };
    require(!step.model_name.empty(), "model_name");
    require(!step.input_map.empty(), "input_map");
    require(!step.output_map.empty(), "output_map");
    return complete;
  }

  bool Step(size_t i) {
    if (!StepIsComplete(i)) return false;
    const Ensembling::Step& step = ensemble_.step[i];
    bool distinct = true;
    std::vector<std::string_view> written;
    for (const auto& [model_output, name] : step.output_map) {
      const auto it = nodes_.try_emplace(name).first;
      if (it->second.is_output) {
        Add(fmt::format("ensemble tensor '{}' can appear in an output map only once for ensemble "
                        "'{}' step {}",
                        name, config_.name, i),
            fmt::format("ensemble_scheduling.step[{}].output_map['{}']", i, model_output),
            "'" + name + "'", "a tensor that no other step writes", "ensemble-written-twice");
        distinct = false;
      }
      it->second.is_output = true;
      written.push_back(it->first);
    }
    for (const auto& [model_input, name] : step.input_map) {
      const auto it = nodes_.try_emplace(name).first;
      for (const std::string_view output : written) {
        nodes_.find(output)->second.sources.push_back(it->first);
        it->second.users.push_back(output);
      }
    }
    return distinct;
  }

  void MarkReady() {
    std::deque<std::string_view> queue;
    for (size_t i = 0; i < config_.input.size(); ++i) {
      const std::string& name = config_.input[i].name;
      const auto it = nodes_.find(name);
      if (it == nodes_.end()) {
        Add(fmt::format("ensemble input '{}' for ensemble {}' is not used", name, config_.name),
            fmt::format("input[{}].name", i), "'" + name + "'", "a tensor of some input_map",
            "ensemble-input-unused");
        continue;
      }
      it->second.ready = true;
      queue.push_back(it->first);
    }
    while (!queue.empty()) {
      const Node& node = nodes_.find(queue.front())->second;
      queue.pop_front();
      for (const std::string_view name : node.users) {
        const auto it = nodes_.find(name);
        if (it->second.ready || !SourcesAreReady(it->second)) continue;
        it->second.ready = true;
        queue.push_back(it->first);
      }
    }
  }

  bool SourcesAreReady(const Node& node) const {
    for (const std::string_view source : node.sources) {
      if (!nodes_.find(source)->second.ready) return false;
    }
    return true;
  }

  // Follows sources that are not ready back to the start of the chain. A cycle ends the search.
  std::string_view FirstMissing(std::string_view name) const {
    std::set<std::string_view> seen;
    for (;;) {
      std::string_view next;
      for (const std::string_view source : nodes_.find(name)->second.sources) {
        if (nodes_.find(source)->second.ready || !seen.insert(source).second) continue;
        next = source;
        break;
      }
      if (next.empty()) return name;
      name = next;
    }
  }

  void Outputs() {
    for (size_t i = 0; i < config_.output.size(); ++i) {
      const std::string& name = config_.output[i].name;
      const std::string field = fmt::format("output[{}].name", i);
      const auto it = nodes_.find(name);
      if (it == nodes_.end()) {
        Add(fmt::format("ensemble output '{}' for ensemble {}' is not used", name, config_.name),
            field, "'" + name + "'", "a tensor of some output_map", "ensemble-output-unmapped");
        continue;
      }
      outputs_.insert(it->first);
      if (it->second.ready) continue;
      std::string text =
          fmt::format("output '{}' for ensemble '{}' is not written", name, config_.name);
      const std::string_view missing = FirstMissing(it->first);
      if (missing != name) {
        text +=
            fmt::format(": at least one of its depending tensors, '{}', is not connected", missing);
      }
      Add(std::move(text), field, "'" + name + "'", "a tensor that the steps compute",
          "ensemble-output-unwritten");
    }
  }

  void UnusedTensors() {
    for (const auto& [name, node] : nodes_) {
      if (outputs_.count(name) != 0 || (node.ready && !node.users.empty())) continue;
      Add(fmt::format("ensemble tensor '{}' is unused in ensemble '{}'", name, config_.name),
          "ensemble_scheduling", "'" + name + "'",
          "every tensor to be written and to be read or returned", "ensemble-tensor-unused");
    }
  }

  const ModelConfig& config_;
  const Ensembling& ensemble_;
  ErrorList& errors_;
  std::map<std::string, Node, std::less<>> nodes_;
  std::set<std::string_view> outputs_;
};

}  // namespace

ErrorList CheckEnsemble(const ModelConfig& config) {
  ErrorList errors;
  if (config.platform != kEnsemblePlatform) {
    errors.Add(
        {kInvalid,
         fmt::format("ensemble scheduling cannot be set for model '{}' whose platform is not "
                     "{}",
                     config.name, kEnsemblePlatform),
         "platform", "'" + config.platform + "'", fmt::format("'{}'", kEnsemblePlatform),
         "ensemble-platform"});
  }
  if (!config.instance_group.empty()) {
    errors.Add(
        {kInvalid,
         fmt::format("instance group should not be specified for ensemble '{}'", config.name),
         "instance_group", "a group", "none", "ensemble-setting"});
  }
  if (config.optimization) {
    errors.Add({kInvalid,
                fmt::format("optimization should not be specified for ensemble '{}'", config.name),
                "optimization", "settings", "none", "ensemble-setting"});
  }
  if (!config.model_warmup.empty()) {
    errors.Add({kInvalid,
                fmt::format("model_warmup can not be specified for ensemble '{}'", config.name),
                "model_warmup", "samples", "none", "ensemble-setting"});
  }
  if (config.ensemble_scheduling()->step.empty()) {
    errors.Add({kInvalid, fmt::format("must specify 'step' for ensemble '{}'", config.name),
                "ensemble_scheduling.step", "nothing", "at least one step", "ensemble-no-steps"});
    return errors;
  }
  EnsembleGraph(config, errors).Run();
  return errors;
}

}  // namespace nereid::config
