// SPDX-License-Identifier: Apache-2.0
#include "object_store/flat_json.h"

#include <rapidjson/document.h>

#include <fmt/format.h>

namespace nereid::object_store {
namespace {

constexpr int kMaxDepth = 8;

void Flatten(const rapidjson::Value& value, const std::string& path, int depth, FlatJson& flat) {
  if (value.IsString()) {
    flat.emplace(path, std::string(value.GetString(), value.GetStringLength()));
  } else if (value.IsBool()) {
    flat.emplace(path, value.GetBool() ? "true" : "false");
  } else if (value.IsInt64()) {
    flat.emplace(path, fmt::format("{}", value.GetInt64()));
  } else if (value.IsNumber()) {
    flat.emplace(path, fmt::format("{}", value.GetDouble()));
  } else if (depth < kMaxDepth && value.IsObject()) {
    for (const auto& member : value.GetObject()) {
      const std::string_view name(member.name.GetString(), member.name.GetStringLength());
      Flatten(member.value, fmt::format("{}{}{}", path, path.empty() ? "" : ".", name), depth + 1,
              flat);
    }
  } else if (depth < kMaxDepth && value.IsArray()) {
    for (rapidjson::SizeType i = 0; i < value.Size(); ++i) {
      Flatten(value[i], fmt::format("{}.{}", path, i), depth + 1, flat);
    }
  }
}

}  // namespace

base::Result<FlatJson> ParseFlatJson(std::string_view json) {
  rapidjson::Document document;
  // The iterative parser, because a nested document would exhaust the stack of a recursive one.
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return base::InvalidArgumentError("this is not a JSON object");
  }
  FlatJson flat;
  Flatten(document, "", 0, flat);
  return flat;
}

std::string ValueOf(const FlatJson& json, const std::string& path) {
  const auto found = json.find(path);
  return found == json.end() ? std::string() : found->second;
}

}  // namespace nereid::object_store
