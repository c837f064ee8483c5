// SPDX-License-Identifier: Apache-2.0
#include "service/model_json.h"

#include "base/json_text.h"

namespace nereid::service {
namespace {

using base::AppendJsonInteger;
using base::AppendJsonString;

template <typename Range, typename Print>
void AppendList(std::string& json, const Range& range, const Print& print) {
  json += '[';
  bool is_first = true;
  for (const auto& element : range) {
    if (!is_first) json += ',';
    is_first = false;
    print(element);
  }
  json += ']';
}

void AppendTexts(std::string& json, const std::vector<std::string>& texts) {
  AppendList(json, texts, [&](const std::string& text) { AppendJsonString(json, text); });
}

void AppendTensors(std::string& json, const std::vector<TensorMetadata>& tensors) {
  AppendList(json, tensors, [&](const TensorMetadata& tensor) {
    json += "{\"name\":";
    AppendJsonString(json, tensor.name);
    json += ",\"datatype\":";
    AppendJsonString(json, tensor::ProtocolName(tensor.type));
    json += ",\"shape\":";
    AppendList(json, tensor.shape.dims(), [&](int64_t dim) { AppendJsonInteger(json, dim); });
    json += '}';
  });
}

void AppendMember(std::string& json, std::string_view name, std::string_view value) {
  json += ",\"";
  json += name;
  json += "\":";
  AppendJsonString(json, value);
}

void AppendNumber(std::string& json, std::string_view name, uint64_t value) {
  json += ",\"";
  json += name;
  json += "\":";
  json += std::to_string(value);
}

// Appends `"name":{"count":n,"ns":n}`.
void AppendDuration(std::string& json, std::string_view name, const core::Duration& duration) {
  if (json.back() != '{') json += ',';
  json += '"';
  json += name;
  json += "\":{\"count\":";
  json += std::to_string(duration.count);
  AppendNumber(json, "ns", duration.ns);
  json += '}';
}

void AppendStatistics(std::string& json, const ModelStatistics& model) {
  const core::StatisticsSnapshot& statistics = model.statistics;
  json += "{\"name\":";
  AppendJsonString(json, model.name);
  AppendMember(json, "version", model.version);
  AppendNumber(json, "last_inference", statistics.last_inference_ms);
  AppendNumber(json, "inference_count", statistics.inference_count);
  AppendNumber(json, "execution_count", statistics.execution_count);
  json += ",\"inference_stats\":{";
  AppendDuration(json, "success", statistics.success);
  AppendDuration(json, "fail", statistics.fail);
  AppendDuration(json, "queue", statistics.queue);
  AppendDuration(json, "compute_input", statistics.compute_input);
  AppendDuration(json, "compute_infer", statistics.compute_infer);
  AppendDuration(json, "compute_output", statistics.compute_output);
  AppendDuration(json, "cache_hit", statistics.cache_hit);
  AppendDuration(json, "cache_miss", statistics.cache_miss);
  json += "},\"response_stats\":{";
  for (const auto& [position, response] : statistics.responses) {
    if (json.back() != '{') json += ',';
    json += '"';
    json += std::to_string(position);
    json += "\":{";
    AppendDuration(json, "compute_infer", response.compute_infer);
    AppendDuration(json, "compute_output", response.compute_output);
    AppendDuration(json, "success", response.success);
    AppendDuration(json, "fail", response.fail);
    AppendDuration(json, "empty_response", response.empty_response);
    AppendDuration(json, "cancel", response.cancel);
    json += '}';
  }
  json += "},\"batch_stats\":";
  AppendList(json, statistics.batches, [&](const auto& batch) {
    json += "{\"batch_size\":";
    json += std::to_string(batch.first);
    AppendDuration(json, "compute_input", batch.second.compute_input);
    AppendDuration(json, "compute_infer", batch.second.compute_infer);
    AppendDuration(json, "compute_output", batch.second.compute_output);
    json += '}';
  });
  json += ",\"memory_usage\":";
  AppendList(json, statistics.memory, [&](const core::MemoryUse& use) {
    json += "{\"type\":";
    AppendJsonString(json, memory::MemoryTypeName(use.where.type));
    json += ",\"id\":";
    AppendJsonInteger(json, use.where.id);
    AppendNumber(json, "byte_size", use.bytes);
    json += '}';
  });
  json += '}';
}

void AppendLabels(std::string& json, const std::map<std::string, int64_t, std::less<>>& labels) {
  json += '{';
  for (const auto& [label, version] : labels) {
    if (json.back() != '{') json += ',';
    AppendJsonString(json, label);
    json += ':';
    AppendJsonInteger(json, version);
  }
  json += '}';
}

void AppendShadow(std::string& json, const Shadow& shadow, const ShadowCounts& counts) {
  json += ",\"shadow\":{\"percent\":";
  base::AppendJsonDouble(json, shadow.percent);
  if (!shadow.model.empty()) AppendMember(json, "model", shadow.model);
  if (shadow.version) json += ",\"version\":" + std::to_string(*shadow.version);
  json += ",\"tolerance\":";
  base::AppendJsonDouble(json, shadow.tolerance);
  AppendNumber(json, "in_flight", shadow.in_flight);
  json += ",\"results\":{\"equal\":" + std::to_string(counts.equal);
  AppendNumber(json, "different", counts.different);
  AppendNumber(json, "failed", counts.failed);
  AppendNumber(json, "dropped", counts.dropped);
  json += "}}";
}

}  // namespace

std::string ToJson(std::span<const ModelStatistics> list) {
  std::string json = "{\"model_stats\":";
  AppendList(json, list, [&](const ModelStatistics& model) { AppendStatistics(json, model); });
  return json + "}";
}

std::string ToJson(const ServerMetadata& metadata) {
  std::string json = "{\"name\":";
  AppendJsonString(json, metadata.name);
  AppendMember(json, "version", metadata.version);
  json += ",\"extensions\":";
  AppendTexts(json, metadata.extensions);
  json += '}';
  return json;
}

std::string ToJson(const ModelMetadata& metadata) {
  std::string json = "{\"name\":";
  AppendJsonString(json, metadata.name);
  json += ",\"versions\":";
  AppendTexts(json, metadata.versions);
  AppendMember(json, "platform", metadata.platform);
  json += ",\"inputs\":";
  AppendTensors(json, metadata.inputs);
  json += ",\"outputs\":";
  AppendTensors(json, metadata.outputs);
  if (!metadata.labels.empty()) {
    json += ",\"version_labels\":";
    AppendLabels(json, metadata.labels);
  }
  json += '}';
  return json;
}

std::string ToJson(std::span<const IndexEntry> index) {
  std::string json;
  AppendList(json, index, [&](const IndexEntry& entry) {
    json += "{\"name\":";
    AppendJsonString(json, entry.name);
    if (!entry.version.empty()) AppendMember(json, "version", entry.version);
    if (!entry.state.empty()) AppendMember(json, "state", entry.state);
    if (!entry.reason.empty()) AppendMember(json, "reason", entry.reason);
    if (!entry.labels.empty()) {
      json += ",\"labels\":";
      AppendTexts(json, entry.labels);
    }
    json += '}';
  });
  return json;
}

std::string ToJson(const TrafficState& state) {
  const TrafficRules& rules = state.rules;
  std::string json = "{\"labels\":";
  AppendLabels(json, rules.labels);
  if (!rules.default_label.empty()) AppendMember(json, "default_label", rules.default_label);
  if (rules.canary) {
    json += ",\"canary\":{\"version\":" + std::to_string(rules.canary->version) + ",\"percent\":";
    base::AppendJsonDouble(json, rules.canary->percent);
    AppendMember(json, "header", rules.canary->header);
    if (!rules.canary->label.empty()) AppendMember(json, "label", rules.canary->label);
    json += '}';
  }
  if (rules.shadow) AppendShadow(json, *rules.shadow, state.shadow_counts);
  json += state.is_as_configured ? ",\"as_configured\":true}" : ",\"as_configured\":false}";
  return json;
}

std::string ToJson(std::string_view quality, bool is_good, std::span<const HealthCheck> checks) {
  std::string json = "{";
  AppendJsonString(json, quality);
  json += is_good ? ":true" : ":false";
  json += ",\"checks\":";
  AppendList(json, checks, [&](const HealthCheck& check) {
    json += "{\"name\":";
    AppendJsonString(json, check.name);
    json += check.problems.empty() ? ",\"ok\":true" : ",\"ok\":false,\"problems\":";
    if (!check.problems.empty()) AppendTexts(json, check.problems);
    json += '}';
  });
  json += '}';
  return json;
}

}  // namespace nereid::service
