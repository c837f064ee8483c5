// SPDX-License-Identifier: Apache-2.0
// A cache's configuration from --cache-config: one JSON object, whose values the server writes as
// strings; numbers and booleans are accepted, too.
#pragma once

#include <rapidjson/document.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::cache {

// The settings of a cache. Immutable.
class Settings {
 public:
  // Text that is not a JSON object has no settings.
  explicit Settings(const char* json) { document_.Parse(json); }

  bool Has(const char* name) const { return Find(name) != nullptr; }
  // Returns nothing if the setting is absent or is not a string, number or boolean.
  std::optional<std::string> Text(const char* name) const {
    const rapidjson::Value* value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (value->IsString()) return std::string(value->GetString(), value->GetStringLength());
    if (value->IsUint64()) return std::to_string(value->GetUint64());
    if (value->IsBool()) return std::string(value->GetBool() ? "true" : "false");
    return std::nullopt;
  }

 private:
  const rapidjson::Value* Find(const char* name) const {
    if (document_.HasParseError() || !document_.IsObject()) return nullptr;
    const auto found = document_.FindMember(name);
    return found == document_.MemberEnd() ? nullptr : &found->value;
  }

  rapidjson::Document document_;
};

// Parses a decimal integer without anything around it.
inline std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace nereid::cache
