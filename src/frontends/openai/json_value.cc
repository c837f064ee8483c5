// SPDX-License-Identifier: Apache-2.0
#include "openai/json_value.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.h"
#include "common/json_text.h"

namespace nereid::openai {
namespace {

// Returns how deep the brackets outside of texts are nested, in any text.
size_t DepthOf(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted) {
      if (c == '\\') ++i;
      if (c == '"') is_quoted = false;
    } else if (c == '"') {
      is_quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

void AppendNumber(const JsonValue& value, std::string& json) {
  if (value.IsInt64()) {
    common::AppendJsonInteger(json, value.GetInt64());
  } else if (value.IsUint64()) {
    common::AppendJsonInteger(json, value.GetUint64());
  } else {
    common::AppendJsonDouble(json, value.GetDouble());
  }
}

}  // namespace

base::Status ParseBody(std::string_view text, rapidjson::Document& document) {
  if (DepthOf(text) > kMaxJsonDepth) {
    return base::InvalidArgumentError(
        fmt::format("the JSON of the request is nested deeper than {} levels", kMaxJsonDepth));
  }
  // Clients and models would stumble over other bytes, also in texts of errors.
  if (!base::IsValidUtf8(text)) return base::InvalidArgumentError("the request is not valid UTF-8");
  const base::Status status = http::ParseJson(text, document);
  if (!status.ok()) return base::InvalidArgumentError(std::string(status.message()));
  if (!document.IsObject()) {
    return base::InvalidArgumentError(
        fmt::format("the request must be a JSON object, not {}", TypeName(document)));
  }
  return base::OkStatus();
}

void AppendJson(const JsonValue& value, std::string& json) {
  if (value.IsNull()) {
    json += "null";
  } else if (value.IsBool()) {
    common::AppendJsonBool(json, value.GetBool());
  } else if (value.IsString()) {
    common::AppendJsonString(json, TextOf(value));
  } else if (value.IsNumber()) {
    AppendNumber(value, json);
  } else if (value.IsArray()) {
    json += '[';
    for (const JsonValue& element : value.GetArray()) {
      if (&element != value.Begin()) json += ',';
      AppendJson(element, json);
    }
    json += ']';
  } else {
    json += '{';
    bool is_first = true;
    for (const auto& member : value.GetObject()) {
      if (!is_first) json += ',';
      is_first = false;
      common::AppendJsonString(json, TextOf(member.name));
      json += ':';
      AppendJson(member.value, json);
    }
    json += '}';
  }
}

std::string_view TypeName(const JsonValue& value) {
  if (value.IsNull()) return "null";
  if (value.IsBool()) return "a boolean";
  if (value.IsNumber()) return "a number";
  if (value.IsString()) return "a string";
  return value.IsArray() ? "an array" : "an object";
}

const JsonValue* FindField(const JsonValue& object, const char* name) {
  const JsonValue* const member = http::FindMember(object, name);
  return member == nullptr || member->IsNull() ? nullptr : member;
}

}  // namespace nereid::openai
