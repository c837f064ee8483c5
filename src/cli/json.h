// SPDX-License-Identifier: Apache-2.0
// Reading JSON that comes from outside: a member that is missing, or of another type than expected,
// gives a default.
#pragma once

#include <cstdint>
#include <string_view>

#include <rapidjson/document.h>

#include "base/status.h"

namespace nereid::cli {

// Parses the text, in which NaN and Infinity may be bare words; real numbers become the nearest
// double. Returns false, and leaves null in `document`, if it is not JSON or nested more than 1000
// levels deep.
bool ParseJson(std::string_view text, rapidjson::Document& document);

// Parses the body of a server's reply; an empty one is an empty object.
base::Result<rapidjson::Document> ParseReply(std::string_view body);

// Returns null if `object` is no object or has no such member.
const rapidjson::Value* MemberOf(const rapidjson::Value& object, std::string_view name);
// Returns "" if there is no such string.
std::string_view TextOf(const rapidjson::Value& object, std::string_view name);
// Returns 0 if there is no such number.
uint64_t NumberOf(const rapidjson::Value& object, std::string_view name);
// Returns an empty array if there is no such array.
rapidjson::Value::ConstArray ListOf(const rapidjson::Value& object, std::string_view name);

// A string value that owns its text.
rapidjson::Value TextValue(std::string_view text, rapidjson::Document& document);

// Adds a member whose name is a literal.
void AddMember(rapidjson::Document& document, rapidjson::Value& object, const char* name,
               rapidjson::Value value);

// Returns the document in one line.
std::string WriteJson(const rapidjson::Value& document);

}  // namespace nereid::cli
