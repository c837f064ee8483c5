// SPDX-License-Identifier: Apache-2.0
// The metrics page: the nv_* families with the names, types and labels that dashboards know,
// histograms of our own (nereid_*), and the metrics of plug-ins.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/budgets.h"
#include "core/model.h"
#include "engine/health.h"
#include "engine/life_cycle.h"
#include "engine/metrics_config.h"
#include "engine/model_table.h"
#include "engine/on_demand.h"
#include "memory/gpus.h"
#include "observe/cpu_metrics.h"
#include "observe/gpu_metrics.h"
#include "service/service.h"

namespace nereid::engine {

// Returns which statistics of `model` to collect. `has_cache`: the server caches responses of the
// models that enable it.
core::ObserveOptions ObserveOptionsFor(const config::ModelConfig& model,
                                       const MetricsConfig& config, bool has_cache);

// What the page is made of, at one moment.
struct MetricsSources {
  std::vector<LifeCycle::Loaded> models;
  const ModelTable& table;
  const Health& health;
  const core::Budgets& budgets;
  bool has_cache = false;  // the server caches responses of the models that enable it
  bool is_live = false;
  bool is_serving = false;                                 // it has started and does not drain
  bool needs_models = false;                               // it is ready only if its models are
  std::optional<OnDemandCounts> on_demand = std::nullopt;  // in that control mode
};

// Returns what the page says of the load of these models, in sum. Prints nothing, and reads of each
// model a count and the head of its queue only.
service::LoadTotals SumLoads(const std::vector<std::shared_ptr<core::Model>>& models);

// Produces the metrics page. Thread-safe.
class Metrics {
 public:
  // `gpus` outlives this.
  Metrics(MetricsConfig config, const memory::Gpus& gpus);

  const MetricsConfig& config() const { return config_; }
  std::string Page(const MetricsSources& sources);
  // Returns what the GPUs say of themselves; nothing if their metrics are off.
  std::vector<observe::GpuReading> ReadGpus() const;

 private:
  const MetricsConfig config_;
  const memory::Gpus& gpus_;
  std::unique_ptr<observe::CpuMetrics> cpu_;  // null: disabled
  std::unique_ptr<observe::GpuMetrics> gpu_;  // null: disabled, or no GPU
};

}  // namespace nereid::engine
