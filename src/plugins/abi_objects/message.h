// SPDX-License-Identifier: Apache-2.0
// Structured text that crosses the C API as JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "triton/core/tritonserver.h"

// Immutable.
struct TRITONSERVER_Message {
  std::string json;
};

namespace nereid::abi_objects {

// `text` as a JSON string, quotes included.
std::string QuoteJson(std::string_view text);
// {"<key>":"<value>",...}
std::string ObjectJson(const std::map<std::string, std::string>& values);
// {"<name>":{"<key>":"<value>",...}}: the form of backend settings and host policies.
std::string SettingsJson(std::string_view name, const std::map<std::string, std::string>& settings);

}  // namespace nereid::abi_objects
