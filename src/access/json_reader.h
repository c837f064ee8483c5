// SPDX-License-Identifier: Apache-2.0
// JSON from people and from strangers, parsed without recursion. For this module's own files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <rapidjson/document.h>

namespace nereid::access {

// Returns the document if it is one JSON object in valid UTF-8, and nothing after it.
inline std::optional<rapidjson::Document> ParseObject(std::string_view text) {
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  // The library would take a zero byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  rapidjson::Document document;
  document.Parse<kFlags>(text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) return std::nullopt;
  return document;
}

inline std::string_view ViewOf(const rapidjson::Value& text) {
  return {text.GetString(), text.GetStringLength()};
}

// Returns null if there is no such member.
inline const rapidjson::Value* Find(const rapidjson::Value& object, std::string_view name) {
  const auto member =
      object.FindMember(rapidjson::Value(rapidjson::StringRef(name.data(), name.size())));
  return member == object.MemberEnd() ? nullptr : &member->value;
}

// Returns nothing if there is no such member, or if it is no text.
inline std::optional<std::string_view> FindText(const rapidjson::Value& object,
                                                std::string_view name) {
  const rapidjson::Value* const value = Find(object, name);
  if (value == nullptr || !value->IsString()) return std::nullopt;
  return ViewOf(*value);
}

}  // namespace nereid::access
