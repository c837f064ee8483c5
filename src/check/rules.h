// SPDX-License-Identifier: Apache-2.0
// The rules of a check, by what they look at. Each reports every mistake that it finds in one
// model. Private to this module.
#pragma once

#include <string>
#include <vector>

#include "check/backend_facts.h"
#include "check/model_view.h"
#include "repository/model_source.h"

namespace nereid::check {

// Whether repository agents give the model other files than those in its folder, which a check then
// says nothing about. That of checksums does not.
bool AgentsBringFiles(const ModelView& model);

// Version folders and version policy.
void CheckVersions(const ModelView& model, Findings& findings);
// The model files of the versions that are served. REQUIRES: model.config.
void CheckModelFiles(const ModelView& model, Findings& findings);
// What the backend will add to the configuration, and whether it will add anything. REQUIRES:
// model.config.
Completion CompletionOf(const ModelView& model, const CheckOptions& options);
bool IsComplete(const ModelView& model, const CheckOptions& options);
// Tensors that the server refuses unless the backend completes them, and shapes that are probably
// not what was meant. REQUIRES: model.config.
void CheckTensors(const ModelView& model, const CheckOptions& options, Findings& findings);
// Settings of schedulers and queues that have no effect or make requests slow. REQUIRES:
// model.config.
void CheckBatching(const ModelView& model, Findings& findings);
// Instance groups, under the GPUs and CPUs of `options`. REQUIRES: model.config.
void CheckInstances(const ModelView& model, const CheckOptions& options, Findings& findings);
// The files that a configuration names: labels, initial states, warm-up data, libraries. REQUIRES:
// model.config.
void CheckLabels(const ModelView& model, Findings& findings);
void CheckStates(const ModelView& model, Findings& findings);
void CheckWarmUp(const ModelView& model, Findings& findings);
// The parameters of a model in a process of its own. REQUIRES: model.config.
void CheckIsolation(const ModelView& model, Findings& findings);
// Whether a parameter is one of those.
bool IsOfIsolation(std::string_view parameter);
// What the backend makes of its settings, and whether it is installed. REQUIRES: model.config.
void CheckBackend(const ModelView& model, const CheckOptions& options, Findings& findings);

// Ensembles, with the models of their steps. `models` are all models of the repositories; `report`
// gets the findings.
void CheckEnsembles(const std::vector<ModelView>& models, std::vector<Finding>& report);

// Returns the text of a file in the model's folder of at most 64 MiB; empty if it cannot be read.
std::string TextOf(const std::string& path);

}  // namespace nereid::check
