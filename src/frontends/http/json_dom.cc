// SPDX-License-Identifier: Apache-2.0
#include "http/json_dom.h"

#include <rapidjson/error/en.h>

namespace nereid::http {
namespace {

base::Status ContextError(std::string_view context, std::string_view message) {
  std::string text(context);
  if (!text.empty()) text += ": ";
  text += message;
  return base::InternalError(std::move(text));
}

base::Status MissingMember(std::string_view context, const char* name) {
  return ContextError(context, std::string("attempt to access non-existing object member '") + name +
                                   "'");
}

}  // namespace

base::Status ParseJson(std::string_view text, rapidjson::Document& document) {
  constexpr unsigned kFlags = rapidjson::kParseNanAndInfFlag | rapidjson::kParseIterativeFlag |
                              rapidjson::kParseFullPrecisionFlag;
  document.Parse<kFlags>(text.data(), text.size());
  if (!document.HasParseError()) return base::OkStatus();
  return base::InternalError(std::string("failed to parse the request JSON buffer: ") +
                             rapidjson::GetParseError_En(document.GetParseError()) + " at " +
                             std::to_string(document.GetErrorOffset()));
}

const JsonValue* FindMember(const JsonValue& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

base::Result<std::string_view> JsonText(const JsonValue& value, std::string_view context) {
  if (!value.IsString()) {
    return ContextError(context, "attempt to access JSON non-string as string");
  }
  return std::string_view(value.GetString(), value.GetStringLength());
}

base::Result<bool> JsonBool(const JsonValue& value, std::string_view context) {
  if (!value.IsBool()) {
    return ContextError(context, "attempt to access JSON non-boolean as boolean");
  }
  return value.GetBool();
}

base::Result<uint64_t> JsonUnsigned(const JsonValue& value, std::string_view context) {
  if (!value.IsUint64()) {
    return ContextError(context,
                        "attempt to access JSON non-unsigned-integer as unsigned-integer");
  }
  return value.GetUint64();
}

base::Result<std::string_view> TextMember(const JsonValue& object, const char* name,
                                          std::string_view context) {
  const JsonValue* const member = FindMember(object, name);
  if (member == nullptr) return MissingMember(context, name);
  return JsonText(*member, context);
}

base::Result<const JsonValue*> ArrayMember(const JsonValue& object, const char* name,
                                           std::string_view context) {
  const JsonValue* const member = FindMember(object, name);
  if (member == nullptr) return MissingMember(context, name);
  if (!member->IsArray()) return ContextError(context, "attempt to access JSON non-array as array");
  return member;
}

}  // namespace nereid::http
