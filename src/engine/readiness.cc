// SPDX-License-Identifier: Apache-2.0
#include "engine/readiness.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace nereid::engine {

bool Readiness::AreModelsReady() const {
  if (!life_cycle_.Table().all_ready() || !AreBackendsReady()) return false;
  // Asked only if something is wrong somewhere: this takes time for each model.
  return health_.IsWell() || CheckModels().problems.empty();
}

bool Readiness::MayBlock() const { return !life_cycle_.Table().to_be_asked().empty(); }

base::Status Readiness::StatusOf(const core::Model& model) const {
  if (std::string reason = health_.WhyNot(model); !reason.empty()) {
    return base::UnavailableError(std::move(reason));
  }
  return model.CheckReady();
}

bool Readiness::IsReady(const core::Model& model) const {
  const base::Status status = StatusOf(model);
  if (!status.ok()) {
    NEREID_VLOG(1, "Model '{}' version {} is not ready: {}", model.name(), model.version_text(),
                status.message());
  }
  return status.ok();
}

bool Readiness::AreBackendsReady() const {
  // All models are pinned first, because a readiness check may unload models.
  std::vector<core::ModelHandle> models;
  for (core::Model* const model : life_cycle_.Table().to_be_asked()) {
    if (model->TryPin()) models.push_back(core::ModelHandle(*model));
  }
  return std::ranges::all_of(models,
                             [this](const core::ModelHandle& model) { return IsReady(*model); });
}

// Reasons of failed loads are left to the repository index, which fewer people may read.
service::HealthCheck Readiness::CheckModels() const {
  service::HealthCheck check{.name = "models"};
  const ModelTable& table = life_cycle_.Table();
  std::vector<core::ModelHandle> loaded;
  for (const auto& [id, record] : table.models()) {
    if (record->versions.empty()) {
      check.problems.push_back(fmt::format("model '{}' has no available versions", id.Text()));
    }
    for (const auto& [version, state] : record->versions) {
      if (state.state == VersionState::kReady && state.model->TryPin()) {
        loaded.emplace_back(*state.model);
      } else if (state.is_missing()) {
        check.problems.push_back(
            fmt::format("model '{}' version {} is {}", id.Text(), version, StateName(state.state)));
      }
    }
  }
  for (const core::ModelHandle& model : loaded) {
    const base::Status status = StatusOf(*model);
    if (status.ok()) continue;
    check.problems.push_back(fmt::format("model '{}' version {}: {}", model->name(),
                                         model->version_text(), status.message()));
  }
  return check;
}

void Readiness::CheckModel(const core::Model& model, service::HealthCheck& instances,
                           service::HealthCheck& backend) const {
  if (std::string reason = health_.WhyNot(model); !reason.empty()) {
    instances.problems.push_back(std::move(reason));
  } else if (const base::Status status = model.CheckReady(); !status.ok()) {
    backend.problems.emplace_back(status.message());
  }
}

}  // namespace nereid::engine
