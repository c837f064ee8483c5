// SPDX-License-Identifier: Apache-2.0
#include "common/load_report.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>

#include "common/json_text.h"

namespace nereid::common {
namespace {

// Returns the last value of kKeyValueCacheFamily with that kv_cache_block_type; nothing if there is
// none.
std::optional<double> FindCacheValue(std::string_view lines, std::string_view type) {
  const std::string start = std::string(kKeyValueCacheFamily) + "{";
  const std::string label = "kv_cache_block_type=\"" + std::string(type) + "\"";
  std::optional<double> found;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (!line.starts_with(start)) continue;
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

// How full the key-value cache of a language model is.
struct CacheLoad {
  double utilization = 0;
  uint64_t token_capacity = 0;
};

std::optional<CacheLoad> ReadCacheLoad(std::string_view lines) {
  const auto used = FindCacheValue(lines, "used");
  const auto most = FindCacheValue(lines, "max");
  const auto tokens = FindCacheValue(lines, "tokens_per");
  if (!used || !most || !tokens) return std::nullopt;
  const double capacity = *most * *tokens;
  return CacheLoad{
      .utilization = *most > 0 ? *used / *most : 0,
      .token_capacity = capacity < 1e18 ? static_cast<uint64_t>(capacity) : UINT64_MAX};
}

// Appends an entry of named_metrics, a map<string, double>: field 8 of OrcaLoadReport. REQUIRES:
// the name has fewer than 100 bytes, so that every length takes one.
void AppendNamedMetric(std::string& message, std::string_view name, double value) {
  constexpr char kNamedMetrics = 8 << 3 | 2;
  constexpr char kKey = 1 << 3 | 2;
  constexpr char kValue = 2 << 3 | 1;
  message += kNamedMetrics;
  message += static_cast<char>(2 + name.size() + 9);
  message += kKey;
  message += static_cast<char>(name.size());
  message += name;
  message += kValue;
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) message += static_cast<char>(bits >> shift & 0xFF);
}

}  // namespace

std::string LoadText(std::string_view format, const service::LoadTotals& totals,
                     std::string_view cache_lines) {
  const bool is_json = format == "json";
  if (!is_json && format != "text") return {};
  std::string text = is_json ? "JSON {\"named_metrics\":{" : "TEXT ";
  // std::to_string writes doubles as Triton's does.
  const auto add = [&](std::string_view name, auto value) {
    if (!text.ends_with('{') && !text.ends_with(' ')) text += is_json ? "," : ", ";
    text += is_json ? "\"" : "named_metrics.";
    text += name;
    text += is_json ? "\":" : "=";
    if (!is_json) {
      text += std::to_string(value);
    } else if constexpr (std::is_floating_point_v<decltype(value)>) {
      AppendJsonDouble(text, value);
    } else {
      AppendJsonInteger(text, value);
    }
  };
  if (const std::optional<CacheLoad> load = ReadCacheLoad(cache_lines)) {
    add("kv_cache_utilization", load->utilization);
    add("max_token_capacity", load->token_capacity);
  }
  add("requests_in_flight", totals.requests_in_flight);
  add("queue_oldest_seconds", totals.queue_oldest_seconds);
  return is_json ? text + "}}" : text;
}

std::string LoadMessage(const service::LoadTotals& totals, std::string_view cache_lines) {
  std::string message;
  AppendNamedMetric(message, "requests_in_flight", static_cast<double>(totals.requests_in_flight));
  AppendNamedMetric(message, "queue_oldest_seconds", totals.queue_oldest_seconds);
  if (const std::optional<CacheLoad> load = ReadCacheLoad(cache_lines)) {
    AppendNamedMetric(message, "kv_cache_utilization", load->utilization);
    AppendNamedMetric(message, "max_token_capacity", static_cast<double>(load->token_capacity));
  }
  return message;
}

std::string ReadLoadText(std::string_view format, service::Service& service) {
  if (format != "json" && format != "text") return {};
  return LoadText(format, service.ReadLoadTotals(),
                  service.PluginMetricsText(kKeyValueCacheFamily));
}

std::string ReadLoadMessage(service::Service& service) {
  return LoadMessage(service.ReadLoadTotals(), service.PluginMetricsText(kKeyValueCacheFamily));
}

}  // namespace nereid::common
