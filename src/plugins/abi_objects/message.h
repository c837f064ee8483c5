// SPDX-License-Identifier: Apache-2.0
// Structured text, which crosses the C API as JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "triton/core/tritonserver.h"

// A JSON text. Immutable.
struct TRITONSERVER_Message {
  std::string json;
};

namespace nereid::abi_objects {

// Returns `text` as a JSON string, including quotes.
std::string QuoteJson(std::string_view text);
// Returns {"<key>":"<value>",...}.
std::string ObjectJson(const std::map<std::string, std::string>& values);
// Returns {"<name>":{"<key>":"<value>",...}}, the form of backend settings and host policies.
std::string SettingsJson(std::string_view name, const std::map<std::string, std::string>& settings);

}  // namespace nereid::abi_objects
