// SPDX-License-Identifier: Apache-2.0
#include "http/model_json.h"

#include "common/json_text.h"

namespace nereid::http {
namespace {

using common::AppendJsonInteger;
using common::AppendJsonString;

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

void AppendTensors(std::string& json, const std::vector<service::TensorMetadata>& tensors) {
  AppendList(json, tensors, [&](const service::TensorMetadata& tensor) {
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

}  // namespace

std::string ToJson(const service::ServerMetadata& metadata) {
  std::string json = "{\"name\":";
  AppendJsonString(json, metadata.name);
  AppendMember(json, "version", metadata.version);
  json += ",\"extensions\":";
  AppendTexts(json, metadata.extensions);
  json += '}';
  return json;
}

std::string ToJson(const service::ModelMetadata& metadata) {
  std::string json = "{\"name\":";
  AppendJsonString(json, metadata.name);
  json += ",\"versions\":";
  AppendTexts(json, metadata.versions);
  AppendMember(json, "platform", metadata.platform);
  json += ",\"inputs\":";
  AppendTensors(json, metadata.inputs);
  json += ",\"outputs\":";
  AppendTensors(json, metadata.outputs);
  json += '}';
  return json;
}

std::string ToJson(std::span<const service::IndexEntry> index) {
  std::string json;
  AppendList(json, index, [&](const service::IndexEntry& entry) {
    json += "{\"name\":";
    AppendJsonString(json, entry.name);
    if (!entry.version.empty()) AppendMember(json, "version", entry.version);
    if (!entry.state.empty()) AppendMember(json, "state", entry.state);
    if (!entry.reason.empty()) AppendMember(json, "reason", entry.reason);
    json += '}';
  });
  return json;
}

}  // namespace nereid::http
