// SPDX-License-Identifier: Apache-2.0
// Parsed JSON: bodies of requests within a limit of depth, and values as text again. Private to
// this module.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "http/json_dom.h"

namespace nereid::openai {

using http::JsonValue;

// No client nests deeper, and values of this depth may be read by recursion.
inline constexpr size_t kMaxJsonDepth = 100;

// Fails with InvalidArgument for text that is not JSON in UTF-8, not an object, or nested deeper
// than kMaxJsonDepth.
base::Status ParseBody(std::string_view text, rapidjson::Document& document);

// Appends `value`, which ParseBody has read, as JSON.
void AppendJson(const JsonValue& value, std::string& json);

// Returns the name of the value's type: "a number", "null" and so on.
std::string_view TypeName(const JsonValue& value);

// Returns the member of that name; null if there is none or it is null, which means the same in
// this API.
const JsonValue* FindField(const JsonValue& object, const char* name);

// The text of a string.
inline std::string_view TextOf(const JsonValue& value) {
  return {value.GetString(), value.GetStringLength()};
}

}  // namespace nereid::openai
