// SPDX-License-Identifier: Apache-2.0
// The models on demand of a server: what its requests and load requests do with them in the control
// mode "ondemand". In the other modes there are none.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/timers.h"
#include "core/model_handle.h"
#include "engine/demand_host.h"
#include "engine/on_demand.h"
#include "repository/scanner.h"
#include "service/service.h"

namespace nereid::engine {

// Thread-safe.
class OnDemandModels {
 public:
  // No `options`: the server has another control mode. The others outlive this.
  OnDemandModels(const repository::Scanner& scanner, ModelControl& control, LifeCycle& life_cycle,
                 base::Timers& timers, const std::optional<OnDemandOptions>& options);

  // Whether models are loaded on demand. REQUIRED by Start, Refresh, IsServable, Load and Unload.
  bool are_used() const { return on_demand_ != nullptr; }
  // Begins to serve models, and loads those of `names`. Returns the first error; the other models
  // are loaded all the same. Blocks.
  base::Status Start(const std::set<std::string>& names);
  // Looks for models that are new in the repositories, or gone. Blocks.
  void Refresh() { on_demand_->Refresh(); }
  // Tells all who wait; returns false if a load is still in progress at `deadline`.
  bool Stop(base::TimePoint deadline) {
    return on_demand_ == nullptr || on_demand_->Stop(deadline);
  }

  // Whether a request for a model of that name can have it loaded.
  bool Has(std::string_view name) const {
    return on_demand_ != nullptr && on_demand_->IsKnown(name);
  }
  // Whether a request for the model, which is not loaded, would be served, as far as known.
  bool IsServable(std::string_view name) const { return on_demand_->IsServable(name); }
  // Gives `done` a pin on the model, which is loaded first if it can be; see OnDemand::Await.
  void Await(std::string_view name, std::string_view version, OnDemand::Waiter done);
  // Pins a version like Await, and blocks until then.
  base::Result<core::ModelHandle> Wait(std::string_view name, std::string_view version);

  // See OnDemand::Load and OnDemand::Unload. Both block.
  base::Status Load(std::string_view name, const service::LoadOptions& options) {
    return on_demand_->Load(std::string(name), options);
  }
  base::Status Unload(std::string_view name, bool with_parts) {
    return on_demand_->Unload(std::string(name), with_parts);
  }

  // Says of the models in the index that were never loaded why they are not.
  void Explain(std::vector<service::IndexEntry>& index) const;
  // Nothing in other control modes.
  std::optional<OnDemandCounts> Counts() const;

 private:
  const LifeCycle& life_cycle_;
  EngineDemandHost host_;
  const std::unique_ptr<OnDemand> on_demand_;  // null in other control modes
};

}  // namespace nereid::engine
