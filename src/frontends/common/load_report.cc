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

constexpr std::string_view kCacheFamily = "nv_trt_llm_kv_cache_block_metrics{";

// Calls take(value) for the lines that begin with `family` and have `label` before their value.
template <typename Take>
void ReadValues(std::string_view metrics, std::string_view family, std::string_view label,
                const Take& take) {
  while (!metrics.empty()) {
    const std::string_view line = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(metrics.size(), line.size() + 1));
    if (!line.starts_with(family)) continue;
    const size_t end = line.rfind("} ");
    if (end == std::string_view::npos ||
        line.substr(0, end).find(label) == std::string_view::npos) {
      continue;
    }
    const std::string_view text = line.substr(end + 2);
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc() && std::isfinite(value) && value >= 0) take(value);
  }
}

// Returns the last value of the family with that kv_cache_block_type; nothing if there is none.
std::optional<double> FindCacheValue(std::string_view metrics, std::string_view type) {
  const std::string label = "kv_cache_block_type=\"" + std::string(type) + "\"";
  std::optional<double> found;
  ReadValues(metrics, kCacheFamily, label, [&found](double value) { found = value; });
  return found;
}

// How full the key-value cache of a language model is.
struct CacheLoad {
  double utilization = 0;
  uint64_t token_capacity = 0;
};

std::optional<CacheLoad> ReadCacheLoad(std::string_view metrics) {
  const auto used = FindCacheValue(metrics, "used");
  const auto most = FindCacheValue(metrics, "max");
  const auto tokens = FindCacheValue(metrics, "tokens_per");
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

std::string LoadText(std::string_view format, std::string_view metrics) {
  if (format != "json" && format != "text") return {};
  const std::optional<CacheLoad> load = ReadCacheLoad(metrics);
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

std::string LoadMessage(std::string_view metrics) {
  std::string message;
  double in_flight = 0;
  double oldest_s = 0;
  ReadValues(metrics, "nereid_model_requests_in_flight{", {},
             [&in_flight](double value) { in_flight += value; });
  ReadValues(metrics, "nereid_queue_oldest_seconds{", {},
             [&oldest_s](double value) { oldest_s = std::max(oldest_s, value); });
  AppendNamedMetric(message, "requests_in_flight", in_flight);
  AppendNamedMetric(message, "queue_oldest_seconds", oldest_s);
  if (const std::optional<CacheLoad> load = ReadCacheLoad(metrics)) {
    AppendNamedMetric(message, "kv_cache_utilization", load->utilization);
    AppendNamedMetric(message, "max_token_capacity", static_cast<double>(load->token_capacity));
  }
  return message;
}

}  // namespace nereid::common
