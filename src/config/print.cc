// SPDX-License-Identifier: Apache-2.0
#include "config/print.h"

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "config/proto_convert.h"

namespace nereid::config {
namespace {

// Protobuf prints 64-bit integers as strings. Clients know these as numbers; the other 64-bit fields
// (graph_spec dims, device_id, the dims of an initial_state) they know as strings. Arrays on the way
// are entered, "*" stands for every member of a map.
using Path = std::vector<std::string_view>;

const std::vector<Path>& NumberPaths() {
  static const std::vector<Path> paths = {
      {"input", "dims"},
      {"input", "reshape", "shape"},
      {"output", "dims"},
      {"output", "reshape", "shape"},
      {"version_policy", "specific", "versions"},
      {"dynamic_batching", "max_queue_delay_microseconds"},
      {"dynamic_batching", "priority_levels"},
      {"dynamic_batching", "default_priority_level"},
      {"dynamic_batching", "default_queue_policy", "default_timeout_microseconds"},
      {"dynamic_batching", "priority_queue_policy", "*", "default_timeout_microseconds"},
      {"sequence_batching", "max_sequence_idle_microseconds"},
      {"sequence_batching", "direct", "max_queue_delay_microseconds"},
      {"sequence_batching", "oldest", "max_queue_delay_microseconds"},
      {"sequence_batching", "state", "dims"},
      {"ensemble_scheduling", "step", "model_version"},
      {"model_warmup", "inputs", "*", "dims"},
  };
  return paths;
}

void TurnIntoNumber(rapidjson::Value& value) {
  if (!value.IsString()) return;
  const char* digits = value.GetString();
  if (digits[0] == '-') {
    value.SetInt64(std::strtoll(digits, nullptr, 10));
  } else {
    value.SetUint64(std::strtoull(digits, nullptr, 10));
  }
}

void TurnIntoNumbers(rapidjson::Value& value, std::span<const std::string_view> path) {
  if (value.IsArray()) {
    for (auto& element : value.GetArray()) TurnIntoNumbers(element, path);
    return;
  }
  if (path.empty()) {
    TurnIntoNumber(value);
    return;
  }
  if (!value.IsObject()) return;
  for (auto& member : value.GetObject()) {
    const std::string_view name(member.name.GetString(), member.name.GetStringLength());
    if (path.front() == "*" || path.front() == name) {
      TurnIntoNumbers(member.value, path.subspan(1));
    }
  }
}

constexpr std::string_view kTypeUrl = "type.googleapis.com/";

google::protobuf::util::TypeResolver& Resolver() {
  static const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          "type.googleapis.com", google::protobuf::DescriptorPool::generated_pool()));
  return *resolver;
}

std::string Bytes(const inference::ModelConfig& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

base::Result<std::string> ToJson(const ModelConfig& config, uint32_t config_version) {
  if (config_version != 1) {
    return base::InvalidArgumentError("model configuration version " +
                                      std::to_string(config_version) +
                                      " not supported, supported versions are: 1");
  }
  const inference::ModelConfig message = ToProto(config);
  if (message.ByteSizeLong() == 0) return std::string();
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  // From bytes, because those have their maps in key order and a message has not.
  const auto printed = google::protobuf::util::BinaryToJsonString(
      &Resolver(), std::string(kTypeUrl) + message.GetTypeName(), Bytes(message), &text, options);
  if (!printed.ok()) {
    return base::InternalError("failed to print model configuration as JSON: " +
                               std::string(printed.message()));
  }
  rapidjson::Document document;
  document.Parse(text.data(), text.size());
  if (document.HasParseError()) {
    return base::InternalError("failed to print model configuration as JSON");
  }
  for (const Path& path : NumberPaths()) TurnIntoNumbers(document, path);
  rapidjson::StringBuffer out;
  rapidjson::Writer<rapidjson::StringBuffer> writer(out);
  document.Accept(writer);
  return std::string(out.GetString(), out.GetSize());
}

std::string SerializeToProto(const ModelConfig& config) { return Bytes(ToProto(config)); }

std::string ToText(const ModelConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ToProto(config), &text);
  return text;
}

}  // namespace nereid::config
