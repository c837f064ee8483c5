// SPDX-License-Identifier: Apache-2.0
#include "console/model_load.h"

#include <array>
#include <string_view>

#include "base/json_text.h"
#include "core/statistics.h"

namespace nereid::console {
namespace {

using base::AppendJsonInteger;
using base::AppendJsonString;

void AppendCounts(std::string& json, std::string_view name, const core::DurationBuckets& counts) {
  json += ",\"";
  json += name;
  json += "\":[";
  for (size_t i = 0; i < counts.size(); ++i) {
    if (i > 0) json += ',';
    AppendJsonInteger(json, counts[i]);
  }
  json += ']';
}

template <size_t count>
void AppendNamed(std::string& json, std::string_view name,
                 const std::array<std::string_view, count>& names,
                 const std::array<uint64_t, count>& values) {
  json += ",\"";
  json += name;
  json += "\":{";
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) json += ',';
    AppendJsonString(json, names[i]);
    json += ':';
    AppendJsonInteger(json, values[i]);
  }
  json += '}';
}

void AppendModel(std::string& json, const service::ModelStatistics& model) {
  const core::StatisticsSnapshot& statistics = model.statistics;
  json += "{\"name\":";
  AppendJsonString(json, model.name);
  json += ",\"version\":";
  AppendJsonString(json, model.version);
  json += ",\"pending\":";
  AppendJsonInteger(json, statistics.pending_count);
  AppendCounts(json, "request", statistics.request_buckets);
  AppendCounts(json, "queue", statistics.queue_buckets);
  AppendCounts(json, "compute", statistics.compute_buckets);
  AppendNamed(json, "batches_closed", core::kBatchClosedNames, statistics.batches_closed);
  AppendNamed(json, "failures", core::kFailureReasonNames, statistics.failures);
  AppendNamed(json, "refusals", core::kRefusalNames, statistics.refusals);
  json += '}';
}

}  // namespace

std::string ModelLoadJson(std::span<const service::ModelStatistics> models) {
  std::string json = "{\"bounds_ms\":[";
  for (const uint64_t bound : core::kDurationBoundsNs) {
    if (json.back() != '[') json += ',';
    base::AppendJsonDouble(json, static_cast<double>(bound) / 1e6);
  }
  json += "],\"models\":[";
  for (const service::ModelStatistics& model : models) {
    if (json.back() != '[') json += ',';
    AppendModel(json, model);
  }
  json += "]}";
  return json;
}

}  // namespace nereid::console
