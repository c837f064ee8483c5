// SPDX-License-Identifier: Apache-2.0
// Which metrics a server collects (--metrics-config and similar flags).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/summary.h"

namespace nereid::engine {

// Which families of metrics the server collects, and how. A value type.
struct MetricsConfig {
  bool is_allowed = true;
  bool has_gpu = true;
  bool has_cpu = true;
  std::chrono::milliseconds interval{2000};  // GPU and CPU values are at most half of this old
  bool counter_latencies = true;
  bool histogram_latencies = false;
  bool summary_latencies = false;
  bool nereid_histograms = false;  // our own; more than half of a model's hundred lines on the page
  std::vector<observe::QuantileError> summary_quantiles = {
      {0.5, 0.05}, {0.9, 0.01}, {0.95, 0.001}, {0.99, 0.001}, {0.999, 0.001}};
};

// Applies one setting of --metrics-config. Returns a warning if the setting is invalid; then
// nothing is changed.
std::optional<std::string> ApplyMetricsSetting(std::string_view name, std::string_view value,
                                               MetricsConfig& config);

}  // namespace nereid::engine
