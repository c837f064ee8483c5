// SPDX-License-Identifier: Apache-2.0
// A parsed JSON document with the lookups and error texts of Triton's JSON layer: rapidjson, read
// iteratively (depth costs no stack), NaN and Infinity allowed. For heads that the quick reader
// rejects and for the small bodies of control requests. For this module and `cloud`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rapidjson/document.h>

#include "base/status.h"

namespace nereid::http {

using JsonValue = rapidjson::Value;

// Fails with Internal, "failed to parse the request JSON buffer: <why> at <offset>", for malformed
// text.
base::Status ParseJson(std::string_view text, rapidjson::Document& document);

// Returns the first such member; null if there is none or `object` is not an object.
const JsonValue* FindMember(const JsonValue& object, const char* name);

// Convert values to types. Errors are Internal and begin with `context` and ": ".
base::Result<std::string_view> JsonText(const JsonValue& value, std::string_view context);
base::Result<bool> JsonBool(const JsonValue& value, std::string_view context);
base::Result<uint64_t> JsonUnsigned(const JsonValue& value, std::string_view context);

// Convert members of an object to types; they also fail if there is no such member.
base::Result<std::string_view> TextMember(const JsonValue& object, const char* name,
                                          std::string_view context);
base::Result<const JsonValue*> ArrayMember(const JsonValue& object, const char* name,
                                           std::string_view context);

}  // namespace nereid::http
