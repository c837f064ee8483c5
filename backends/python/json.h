// SPDX-License-Identifier: Apache-2.0
// Reads JSON that a worker wrote. All such JSON must be read here: it may be nested a million deep,
// or be larger than memory, and must cost the server no more than an error.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::python {

// Limits on JSON that a worker wrote.
struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  uint32_t depth = 1;      // of nested objects and arrays
  uint32_t values = 4096;  // in total, at all levels
  bool takes_nan = false;  // as a number, and infinity, which Python writes though JSON lacks them
};

// Limits for keys with texts, numbers and booleans: parameters and labels.
inline constexpr JsonLimits kFlatJson{.takes_nan = true};
// Limits for the configuration that auto_complete_config returns.
inline constexpr JsonLimits kConfigJson{.depth = 64, .values = 1 << 20};

// Parses `text`, which must be an object. `what` begins the error, which says what is wrong: the
// text is not an object, or exceeds a limit. The limits bound stack and memory for any text. The
// text must not change meanwhile, so it must not lie in memory that is shared with the worker.
backend::Result<rapidjson::Document> ParseObject(const std::string& text, std::string_view what,
                                                 const JsonLimits& limits = kFlatJson);

// Refuses a parameter that is no text, integer or boolean.
struct RefuseDouble {
  TRITONSERVER_Error* operator()(const char* /*name*/, double /*value*/) const {
    return backend::Error::InvalidArgument("Unsupported value type on parameters").Release();
  }
};

// Calls set_text(name, value), set_int, set_bool and set_double for the members of a flat object,
// in order, until one returns an error; `what` names the object in errors.
template <typename SetText, typename SetInt, typename SetBool, typename SetDouble = RefuseDouble>
backend::Error ForEachParameter(const std::string& text, std::string_view what, SetText&& set_text,
                                SetInt&& set_int, SetBool&& set_bool, SetDouble&& set_double = {}) {
  if (text.empty() || text == "{}") return {};
  NEREID_KIT_ASSIGN(const rapidjson::Document document, ParseObject(text, what));
  for (const auto& [key, value] : document.GetObject()) {
    const char* const name = key.GetString();
    if (value.IsString()) {
      NEREID_KIT_TRY(set_text(name, value.GetString()));
    } else if (value.IsInt64()) {
      NEREID_KIT_TRY(set_int(name, value.GetInt64()));
    } else if (value.IsBool()) {
      NEREID_KIT_TRY(set_bool(name, value.GetBool()));
    } else if (value.IsDouble()) {
      NEREID_KIT_TRY(set_double(name, value.GetDouble()));
    } else {
      return backend::Error::InvalidArgument("Unsupported value type on parameters");
    }
  }
  return {};
}

}  // namespace nereid::python
