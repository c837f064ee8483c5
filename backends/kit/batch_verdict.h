// SPDX-License-Identifier: Apache-2.0
// A model's description of its tensors, and the verdict whether the model may be batched.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/error.h"

namespace nereid::backend {

// An input or output of a model, as the model describes it.
struct ModelTensor {
  std::string name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> dims;         // -1 if variable
  std::vector<std::string> symbols;  // names of the dimensions; empty, or fewer than dimensions,
                                     // for those without a name
  bool is_output = false;

  std::string_view symbol(size_t d) const {
    return d < symbols.size() ? std::string_view(symbols[d]) : std::string_view();
  }
  std::string Describe() const { return StrCat(is_output ? "output '" : "input '", name, "'"); }
};

// The code for a model without a batch dimension, the only verdict that a configuration cannot
// change.
inline constexpr const char* kFixedDimension = "fixed_dimension";

// Whether a model is batched, and why: the reason is a code for programs, the text is for people.
struct BatchVerdict {
  bool is_batched = false;
  std::string reason;  // "row_values", ...; docs/batching.md lists them
  std::string text;

  static BatchVerdict No(std::string reason, std::string text) {
    return {.is_batched = false, .reason = std::move(reason), .text = std::move(text)};
  }
  static BatchVerdict Yes(std::string reason, std::string text) {
    return {.is_batched = true, .reason = std::move(reason), .text = std::move(text)};
  }

  // Returns {"batched":false,"reason":"row_values","text":"..."}.
  std::string ToJson() const {
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    const auto put = [&writer](const char* key, const std::string& value) {
      writer.Key(key);
      writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
    };
    writer.StartObject();
    writer.Key("batched");
    writer.Bool(is_batched);
    put("reason", reason);
    put("text", text);
    writer.EndObject();
    return {buffer.GetString(), buffer.GetSize()};
  }
};

}  // namespace nereid::backend
