// SPDX-License-Identifier: Apache-2.0
#include "engine/on_demand_models.h"

#include <future>
#include <utility>

namespace nereid::engine {

OnDemandModels::OnDemandModels(const repository::Scanner& scanner, ModelControl& control,
                               LifeCycle& life_cycle, base::Timers& timers,
                               const std::optional<OnDemandOptions>& options)
    : life_cycle_(life_cycle),
      host_(scanner, control, life_cycle, options && options->gpu_memory_budget > 0),
      on_demand_(options ? std::make_unique<OnDemand>(host_, timers, *options) : nullptr) {}

base::Status OnDemandModels::Start(const std::set<std::string>& names) {
  on_demand_->Refresh();
  base::Status status;
  for (const std::string& name : names) {
    base::Status loaded = on_demand_->Load(name, {});
    if (status.ok()) status = std::move(loaded);
  }
  return status;
}

void OnDemandModels::Await(std::string_view name, std::string_view version, OnDemand::Waiter done) {
  if (!Has(name)) return done(life_cycle_.Find(name, version));
  on_demand_->Await(name, version, std::move(done));
}

base::Result<core::ModelHandle> OnDemandModels::Wait(std::string_view name,
                                                     std::string_view version) {
  std::promise<base::Result<core::ModelHandle>> promise;
  Await(name, version,
        [&promise](base::Result<core::ModelHandle> found) { promise.set_value(std::move(found)); });
  return promise.get_future().get();
}

void OnDemandModels::Explain(std::vector<service::IndexEntry>& index) const {
  if (on_demand_ == nullptr) return;
  for (service::IndexEntry& entry : index) {
    if (!entry.state.empty()) continue;
    entry.state = StateName(VersionState::kUnavailable);
    entry.reason = "not loaded: the first request loads it";
  }
}

std::optional<OnDemandCounts> OnDemandModels::Counts() const {
  if (on_demand_ == nullptr) return std::nullopt;
  return on_demand_->Counts();
}

}  // namespace nereid::engine
