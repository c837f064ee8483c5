// SPDX-License-Identifier: Apache-2.0
// Rules about ensembles together with the models of their steps.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "check/rules.h"
#include "engine/ensemble_order.h"
#include "schedule/ensemble_plan.h"

namespace nereid::check {
namespace {

using config::Ensembling;
using config::ModelConfig;
using repository::ModelId;

// The ensembles of all repositories, and what their steps refer to.
class EnsembleCheck {
 public:
  EnsembleCheck(const std::vector<ModelView>& models, std::vector<Finding>& report)
      : models_(models), report_(report) {
    for (const ModelView& model : models) {
      if (!model.config) continue;
      auto source = std::make_shared<repository::ModelSource>();
      source->name = model.name;
      source->name_space = model.name_space;
      source->config = *model.config;
      const ModelId id = source->id();
      sources_.emplace(id, std::move(source));
      views_.emplace(id, &model);
    }
  }

  void Run() {
    for (const ModelView& model : models_) {
      if (model.config && model.config->ensemble_scheduling() != nullptr) Ensemble(model);
    }
    for (const engine::EnsembleEntry& entry : engine::OrderEnsembles(sources_)) {
      const std::string text(entry.status.message());
      const bool is_cycle = text.find("circular dependency") != std::string::npos ||
                            text.find("nested more than") != std::string::npos;
      if (!is_cycle) continue;
      Findings(*views_.at(entry.id), report_)
          .AtField("ensemble-cycle", "ensemble_scheduling.step",
                   {.text = text, .found = "a step that leads back", .expected = "an end"});
    }
  }

 private:
  void Ensemble(const ModelView& model) {
    Findings findings(model, report_);
    const ModelConfig& config = *model.config;
    const std::vector<Ensembling::Step>& steps = config.ensemble_scheduling()->step;
    std::vector<const ModelConfig*> parts;
    std::vector<schedule::StepModel> models;
    for (size_t i = 0; i < steps.size(); ++i) {
      const ModelView* const part = Part(model, i, findings);
      const bool is_known = part != nullptr && part->is_complete;
      parts.push_back(is_known ? &*part->config : nullptr);
      if (is_known) models.push_back({.is_decoupled = part->config->is_decoupled()});
    }
    findings.Append(schedule::EnsembleStepErrors(config, parts));
    // Which tensors come in streams can be told only of ensembles that are right otherwise.
    const bool is_valid = !findings.has_errors() && models.size() == steps.size() &&
                          config::ModelConfigErrors(config).empty();
    if (!is_valid) return;
    const auto plan = schedule::EnsemblePlan::Compile(config, models);
    if (plan.ok()) return;
    findings.AtField("ensemble-streams", "ensemble_scheduling.step",
                     {.text = std::string(plan.status().message()),
                      .found = "tensors of different streams",
                      .expected = "tensors of one stream in each step"});
  }

  // Returns the model of a step; null, after a finding, if there is none that works.
  const ModelView* Part(const ModelView& ensemble, size_t index, Findings& findings) {
    const Ensembling::Step& step = ensemble.config->ensemble_scheduling()->step[index];
    if (step.model_name.empty()) return nullptr;
    const std::string field = fmt::format("ensemble_scheduling.step[{}]", index);
    const auto id = engine::FindStepModel(sources_, ensemble.name_space, step.model_name);
    if (!id) {
      Unknown(ensemble, step, field, findings);
      return nullptr;
    }
    const ModelView& model = *views_.at(*id);
    const bool is_broken = std::ranges::any_of(report_, [&](const Finding& finding) {
      return finding.model == model.name && finding.severity == Severity::kError;
    });
    if (is_broken && model.name != ensemble.name) {
      findings.AtField("ensemble-model-broken", field + ".model_name",
                       {.text = fmt::format("ensemble '{}' depends on '{}' which has no loaded "
                                            "version.",
                                            ensemble.name, step.model_name),
                        .found = fmt::format("'{}'", step.model_name),
                        .expected = "a model without errors"});
    }
    // A version that is left out is version 0.
    if (!is_broken && step.model_version >= 0 && !model.served.contains(step.model_version)) {
      findings.AtField(
          "ensemble-version", field + ".model_version",
          {.text = fmt::format("ensemble '{}' depends on '{}' whose required version {} is not "
                               "loaded.",
                               ensemble.name, step.model_name, step.model_version),
           .found = std::to_string(step.model_version),
           .expected = model.served.empty()
                           ? "a version that is served"
                           : fmt::format("one of {}", fmt::join(model.served, ", "))});
    }
    return &model;
  }

  void Unknown(const ModelView& ensemble, const Ensembling::Step& step, const std::string& field,
               Findings& findings) {
    std::vector<std::string_view> names;
    for (const ModelView& model : models_) names.push_back(model.name);
    const bool is_there = std::ranges::find(names, step.model_name) != names.end();
    const std::string_view nearest = base::NearestName(step.model_name, names);
    findings.AtField(
        is_there ? "ensemble-model-broken" : "ensemble-model-unknown", field + ".model_name",
        {.text = fmt::format("ensemble {} contains models that are not available or ambiguous: {}",
                             ensemble.name, step.model_name),
         .found = fmt::format("'{}'", step.model_name),
         .expected = is_there ? "a model without errors" : "a model of the repository",
         .suggestion = is_there || nearest.empty() ? std::string()
                                                   : fmt::format("Did you mean '{}'?", nearest)});
  }

  const std::vector<ModelView>& models_;
  std::vector<Finding>& report_;
  engine::ModelSources sources_;
  std::map<ModelId, const ModelView*> views_;
};

}  // namespace

void CheckEnsembles(const std::vector<ModelView>& models, std::vector<Finding>& report) {
  EnsembleCheck(models, report).Run();
}

}  // namespace nereid::check
