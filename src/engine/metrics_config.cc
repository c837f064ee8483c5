// SPDX-License-Identifier: Apache-2.0
#include "engine/metrics_config.h"

#include <fmt/core.h>

namespace nereid::engine {

std::optional<std::string> ApplyMetricsSetting(std::string_view name, std::string_view value,
                                               MetricsConfig& config) {
  if (name == "counter_latencies") {
    config.counter_latencies = value != "false";
  } else if (name == "histogram_latencies") {
    config.histogram_latencies = value == "true";
  } else if (name == "summary_latencies") {
    config.summary_latencies = value == "true";
  } else if (name == "summary_quantiles") {
    const observe::Quantiles quantiles = observe::ParseQuantiles(value);
    if (!quantiles.list.empty()) config.summary_quantiles = quantiles.list;
    if (!quantiles.invalid.empty()) {
      return fmt::format("Invalid option: [{}]. Expected format is <quantile>:<error>",
                         quantiles.invalid.front());
    }
  } else {
    return fmt::format("--metrics-config: there is no setting '{}'", name);
  }
  return std::nullopt;
}

}  // namespace nereid::engine
