// SPDX-License-Identifier: Apache-2.0
// Reads JSON that a worker wrote. There is no other way to read any: what a worker writes may be
// nested a million deep, or larger than memory, and must cost the server no more than an error.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::python {

// How much JSON of a worker is read.
struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  uint32_t depth = 1;      // of objects and arrays in each other
  uint32_t values = 4096;  // all in all, whatever they are in
};

// Keys with texts, numbers and truth values: parameters and labels.
inline constexpr JsonLimits kFlatJson{};
// What auto_complete_config makes of a configuration.
inline constexpr JsonLimits kConfigJson{.depth = 64, .values = 1 << 20};

// The object that `text` is. `what` begins the error, which says what is wrong with the text: it is
// no object, or beyond a limit. Uses stack and memory that the limits bound, whatever the text. The
// text must not change meanwhile, and so must not lie in memory that is shared with the worker.
backend::Result<rapidjson::Document> ParseObject(const std::string& text, std::string_view what,
                                                 const JsonLimits& limits = kFlatJson);

// Calls set_text(name, value), set_int and set_bool for the members of a flat object, in their
// order, until one returns an error; `what` names the object in errors.
template <typename SetText, typename SetInt, typename SetBool>
backend::Error ForEachParameter(const std::string& text, std::string_view what, SetText&& set_text,
                                SetInt&& set_int, SetBool&& set_bool) {
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
    } else {
      return backend::Error::InvalidArgument("Unsupported value type on parameters");
    }
  }
  return {};
}

}  // namespace nereid::python
