// SPDX-License-Identifier: Apache-2.0
#include "app/on_demand_flags.h"

#include <limits>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "app/flag_setters.h"

namespace nereid::app {
namespace {

constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max();

#define ON_DEMAND(name) +[](Options& o) -> auto& { return o.engine.on_demand.name; }

base::Status AddPinnedModel(std::string_view value, Options& options) {
  if (value.empty()) return base::InvalidArgumentError("expected the name of a model");
  options.engine.on_demand.pinned.emplace(value);
  return base::OkStatus();
}

// The defaults in the texts are those of engine::OnDemandOptions.
constexpr Flag kOnDemandFlags[] = {
    {"model-memory-budget", kInteger,
     "Bytes of main memory that models on demand may take together; 0: unlimited (0).",
     SetInteger<ON_DEMAND(memory_budget), 0, kMaxBytes>},
    {"model-gpu-memory-budget", kInteger,
     "Bytes of each GPU's memory that models on demand may take together; 0: unlimited (0).",
     SetInteger<ON_DEMAND(gpu_memory_budget), 0, kMaxBytes>},
    {"pin-model", kString,
     "Model on demand to load at the start and never unload. May be given several times.",
     AddPinnedModel},
    {"load-wait-secs", kInteger,
     "Seconds that a request waits for its model on demand to be loaded (30).",
     SetSeconds<ON_DEMAND(load_wait), 1>},
    {"model-min-stay-secs", kInteger, "Seconds that a model on demand stays loaded at least (5).",
     SetSeconds<ON_DEMAND(min_stay)>},
    {"model-idle-secs", kInteger,
     "Seconds without requests after which a model on demand is unloaded; 0: never (0).",
     SetSeconds<ON_DEMAND(idle_unload)>},
};

#undef ON_DEMAND

}  // namespace

std::span<const Flag> OnDemandFlags() { return kOnDemandFlags; }

base::Status CheckOnDemand(const Options& options) {
  const engine::OnDemandOptions& given = options.engine.on_demand;
  if (options.engine.control.mode != engine::ControlMode::kOnDemand) {
    const engine::OnDemandOptions usual;
    const char* flag = nullptr;
    if (given.memory_budget != usual.memory_budget) flag = "model-memory-budget";
    if (given.gpu_memory_budget != usual.gpu_memory_budget) flag = "model-gpu-memory-budget";
    if (!given.pinned.empty()) flag = "pin-model";
    if (given.idle_unload != usual.idle_unload) flag = "model-idle-secs";
    if (flag == nullptr) return base::OkStatus();
    return base::InvalidArgumentError(
        fmt::format("--{} has no effect without --model-control-mode=ondemand", flag));
  }
  if (options.engine.repository.has_namespaces) {
    return base::InvalidArgumentError(
        "--model-control-mode=ondemand cannot be combined with --model-namespacing: a request "
        "could mean several models");
  }
  if (options.engine.control.startup_models.contains("*")) {
    return base::InvalidArgumentError(
        "--load-model=* cannot be combined with --model-control-mode=ondemand: models are loaded "
        "when requests need them");
  }
  return base::OkStatus();
}

}  // namespace nereid::app
