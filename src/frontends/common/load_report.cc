// SPDX-License-Identifier: Apache-2.0
#include "common/load_report.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

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

std::string LoadText(std::string_view format, std::string_view cache_lines) {
  if (format != "json" && format != "text") return {};
  const std::optional<CacheLoad> load = ReadCacheLoad(cache_lines);
  if (!load) return {};
  if (format == "text") {
    return "TEXT named_metrics.kv_cache_utilization=" + std::to_string(load->utilization) +
           ", named_metrics.max_token_capacity=" + std::to_string(load->token_capacity);
  }
  std::string text = "JSON {\"named_metrics\":{\"kv_cache_utilization\":";
  AppendJsonDouble(text, load->utilization);
  text += ",\"max_token_capacity\":";
  AppendJsonInteger(text, load->token_capacity);
  return text + "}}";
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
  return LoadText(format, service.PluginMetricsText(kKeyValueCacheFamily));
}

std::string ReadLoadMessage(service::Service& service) {
  return LoadMessage(service.ReadLoadTotals(), service.PluginMetricsText(kKeyValueCacheFamily));
}

}  // namespace nereid::common
