// SPDX-License-Identifier: Apache-2.0
#include "engine/metrics_config.h"

#include <fmt/core.h>

#include "base/nearest_name.h"

namespace nereid::engine {
namespace {

constexpr std::string_view kSettings[] = {"counter_latencies", "histogram_latencies",
                                          "nereid_histograms", "summary_latencies",
                                          "summary_quantiles"};

std::optional<std::string> SetSwitch(std::string_view name, std::string_view value, bool& field) {
  if (value == "true" || value == "false") {
    field = value == "true";
    return std::nullopt;
  }
  return fmt::format("--metrics-config {}: found '{}', expected true or false; it stays {}", name,
                     value, field);
}

std::optional<std::string> SetQuantiles(std::string_view value,
                                        std::vector<observe::QuantileError>& field) {
  const observe::Quantiles quantiles = observe::ParseQuantiles(value);
  if (!quantiles.list.empty()) field = quantiles.list;
  if (quantiles.invalid.empty()) return std::nullopt;
  const std::vector<std::string_view> invalid(quantiles.invalid.begin(), quantiles.invalid.end());
  return fmt::format(
      "Invalid option: [{}]. Expected format is <quantile>:<error>, two numbers from 0 to 1 such "
      "as "
      "0.95:0.001; --metrics-config summary_quantiles leaves out {}{}",
      invalid.front(), base::QuotedList(invalid),
      quantiles.list.empty() ? " and keeps its defaults" : "");
}

}  // namespace

std::optional<std::string> ApplyMetricsSetting(std::string_view name, std::string_view value,
                                               MetricsConfig& config) {
  if (name == "counter_latencies") return SetSwitch(name, value, config.counter_latencies);
  if (name == "histogram_latencies") return SetSwitch(name, value, config.histogram_latencies);
  if (name == "summary_latencies") return SetSwitch(name, value, config.summary_latencies);
  if (name == "nereid_histograms") return SetSwitch(name, value, config.nereid_histograms);
  if (name == "summary_quantiles") return SetQuantiles(value, config.summary_quantiles);
  return fmt::format("--metrics-config: there is no setting '{}', expected one of {}{}", name,
                     base::QuotedList(kSettings), base::DidYouMean(name, kSettings));
}

}  // namespace nereid::engine
