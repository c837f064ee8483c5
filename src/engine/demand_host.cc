// SPDX-License-Identifier: Apache-2.0
#include "engine/demand_host.h"

#include <chrono>

#include "base/log.h"

namespace nereid::engine {
namespace {

// How long the memory of a model that nobody uses may take to be free. After that, the next load
// goes ahead all the same.
constexpr std::chrono::seconds kMaxTeardownTime{30};
// The same for versions that may have requests, which take as long as they like.
constexpr std::chrono::seconds kMaxUseTime{5};

base::TimePoint After(std::chrono::seconds time) { return std::chrono::steady_clock::now() + time; }

}  // namespace

std::optional<std::set<std::string>> EngineDemandHost::ListModels() {
  const repository::Listing listing = scanner_.List();
  if (!listing.unreadable_repositories.empty()) return std::nullopt;
  std::set<std::string> names;
  for (const auto& [id, place] : listing.places) names.insert(id.name);
  return names;
}

base::Status EngineDemandHost::Load(const std::string& name, const service::LoadOptions& options) {
  return control_.Load(name, options);
}

base::Status EngineDemandHost::Unload(const std::string& name, bool with_parts) {
  return control_.Unload(name, with_parts);
}

bool EngineDemandHost::UnloadIdle(const std::string& name) {
  const std::set<ModelId> ids = control_.UnloadIdle(name);
  if (ids.empty()) return false;
  if (!life_cycle_.WaitUntilGone(ids, After(kMaxTeardownTime))) {
    NEREID_LOG(kWarning, "the memory of model '{}' is not free {} s after its last request", name,
               kMaxTeardownTime.count());
  }
  return true;
}

bool EngineDemandHost::AwaitTeardown(const std::string& name) {
  std::set<ModelId> ids = {{std::string(), name}};
  for (const std::string& part : control_.PartsOf(name)) ids.insert({std::string(), part});
  return life_cycle_.WaitUntilGone(ids, After(kMaxUseTime));
}

base::Result<core::ModelHandle> EngineDemandHost::Find(std::string_view name,
                                                       std::string_view version) {
  return life_cycle_.Find(name, version);
}

ModelActivities EngineDemandHost::Observe() {
  ModelActivities activities;
  for (const LifeCycle::Loaded& loaded : life_cycle_.LoadedModels()) {
    ModelActivity& activity = activities[loaded.id.name];
    core::Model& model = *loaded.model;
    // A pin keeps the scheduler.
    if (!model.TryPin()) continue;
    const core::ModelHandle pin(model);
    activity.is_busy |= model.pin_count() > 1 || model.scheduler().SequenceCount() > 0;
    const core::StatisticsSnapshot statistics = model.statistics().Read();
    activity.requests[model.version()] = statistics.success.count + statistics.fail.count;
  }
  for (auto& [name, activity] : activities) activity.parts = control_.PartsOf(name);
  return activities;
}

}  // namespace nereid::engine
