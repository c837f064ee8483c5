// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <string>

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace nereid::cli {

bool ParseJson(std::string_view text, rapidjson::Document& document) {
  // Iterative, because nesting from outside could exhaust the stack.
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag>(text.data(),
                                                                                  text.size());
  if (!document.HasParseError()) return true;
  document.SetNull();
  return false;
}

base::Result<rapidjson::Document> ParseReply(std::string_view body) {
  rapidjson::Document document;
  if (!ParseJson(body.empty() ? "{}" : body, document)) {
    return base::Status(base::StatusCode::kUnknown,
                        "the reply is not JSON: is this a server of models?");
  }
  return document;
}

const rapidjson::Value* MemberOf(const rapidjson::Value& object, std::string_view name) {
  if (!object.IsObject()) return nullptr;
  const rapidjson::Value key(rapidjson::StringRef(name.data(), name.size()));
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

std::string_view TextOf(const rapidjson::Value& object, std::string_view name) {
  const rapidjson::Value* const value = MemberOf(object, name);
  if (value == nullptr || !value->IsString()) return {};
  return {value->GetString(), value->GetStringLength()};
}

uint64_t NumberOf(const rapidjson::Value& object, std::string_view name) {
  const rapidjson::Value* const value = MemberOf(object, name);
  return value != nullptr && value->IsUint64() ? value->GetUint64() : 0;
}

rapidjson::Value::ConstArray ListOf(const rapidjson::Value& object, std::string_view name) {
  static const rapidjson::Value kNothing(rapidjson::kArrayType);
  const rapidjson::Value* const value = MemberOf(object, name);
  return value != nullptr && value->IsArray() ? value->GetArray() : kNothing.GetArray();
}

rapidjson::Value TextValue(std::string_view text, rapidjson::Document& document) {
  return {text.data(), static_cast<rapidjson::SizeType>(text.size()), document.GetAllocator()};
}

void AddMember(rapidjson::Document& document, rapidjson::Value& object, const char* name,
               rapidjson::Value value) {
  object.AddMember(rapidjson::StringRef(name), value, document.GetAllocator());
}

std::string WriteJson(const rapidjson::Value& document) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  document.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace nereid::cli
