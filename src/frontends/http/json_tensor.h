// SPDX-License-Identifier: Apache-2.0
// From parsed JSON to the tensors and parameters of a request, with Triton's texts: the common part
// of the exact reader of infer heads and the reader of generate requests. Nested arrays are read to
// a depth of kMaxDataDepth. Private to this module.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "common/infer_request_builder.h"
#include "core/request.h"
#include "http/json_dom.h"
#include "memory/arena.h"

namespace nereid::http {

// A tensor, as errors about its data describe it.
struct TensorDescription {
  std::string_view name;
  tensor::DataType type;
};

// Returns the size of a BYTES tensor with the texts of `data` as its elements.
base::Result<uint64_t> SerializedTextSize(const JsonValue& data);
// Reads these texts. `byte_size` is their SerializedTextSize.
base::Result<core::DataChunk> ReadTexts(const JsonValue& data, uint64_t byte_size,
                                        memory::Arena& arena);
// Reads exactly `count` elements of a type with a fixed element size.
base::Result<core::DataChunk> ReadNumbers(const JsonValue& data, int64_t count,
                                          const TensorDescription& tensor, memory::Arena& arena);

// Converts the value to that of a parameter; monostate if no parameter can have it.
common::ParameterValue ToParameter(const JsonValue& value);

// A member of an object.
struct NamedValue {
  std::string_view name;
  const JsonValue* value;
};

// Returns the member of `object` that counts for the key `name`: the first of several. Internal if
// the key cannot be found again because it contains a zero byte.
base::Result<NamedValue> FirstOfName(const JsonValue& object, const JsonValue& name);

}  // namespace nereid::http
