// SPDX-License-Identifier: Apache-2.0
#include "http/load_header.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include "common/json_text.h"

namespace nereid::http {
namespace {

constexpr std::string_view kFamily = "nv_trt_llm_kv_cache_block_metrics{";

// Returns the last value of the family with that kv_cache_block_type; nothing if there is none.
std::optional<double> FindValue(std::string_view metrics, std::string_view type) {
  const std::string label = "kv_cache_block_type=\"" + std::string(type) + "\"";
  std::optional<double> found;
  while (!metrics.empty()) {
    const std::string_view line = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(metrics.size(), line.size() + 1));
    if (!line.starts_with(kFamily)) continue;
    const size_t end = line.rfind("} ");
    if (end == std::string_view::npos ||
        line.substr(0, end).find(label) == std::string_view::npos) {
      continue;
    }
    const std::string_view text = line.substr(end + 2);
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc() && std::isfinite(value) && value >= 0) found = value;
  }
  return found;
}

}  // namespace

std::string MakeLoadHeader(std::string_view format, std::string_view metrics) {
  if (format != "json" && format != "text") return {};
  const auto used = FindValue(metrics, "used");
  const auto most = FindValue(metrics, "max");
  const auto tokens = FindValue(metrics, "tokens_per");
  if (!used || !most || !tokens) return {};
  const double utilization = *most > 0 ? *used / *most : 0;
  const double capacity = *most * *tokens;
  const uint64_t whole_capacity = capacity < 1e18 ? static_cast<uint64_t>(capacity) : UINT64_MAX;
  std::string line = "endpoint-load-metrics: ";
  if (format == "json") {
    line += "JSON {\"named_metrics\":{\"kv_cache_utilization\":";
    common::AppendJsonDouble(line, utilization);
    line += ",\"max_token_capacity\":";
    common::AppendJsonInteger(line, whole_capacity);
    line += "}}";
  } else {
    line += "TEXT named_metrics.kv_cache_utilization=" + std::to_string(utilization) +
            ", named_metrics.max_token_capacity=" + std::to_string(whole_capacity);
  }
  return line + "\r\n";
}

}  // namespace nereid::http
