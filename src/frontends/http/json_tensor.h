// SPDX-License-Identifier: Apache-2.0
// From parsed JSON to the tensors and parameters of a request, in Triton's words: what the exact
// reader of infer heads and the reader of generate requests have in common. Nested arrays are
// walked to a depth of kMaxDataDepth and no further. Private to this module.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "common/infer_request_builder.h"
#include "core/request.h"
#include "http/json_dom.h"
#include "memory/arena.h"

namespace nereid::http {

// A tensor, as errors about its data call it.
struct TensorDescription {
  std::string_view name;
  tensor::DataType type;
};

// Bytes of a BYTES tensor with the texts of `data` as its elements.
base::Result<uint64_t> SerializedTextSize(const JsonValue& data);
// These texts. `byte_size` is their SerializedTextSize.
base::Result<core::DataChunk> ReadTexts(const JsonValue& data, uint64_t byte_size,
                                        memory::Arena& arena);
// Exactly `count` elements of a type with a fixed element size.
base::Result<core::DataChunk> ReadNumbers(const JsonValue& data, int64_t count,
                                          const TensorDescription& tensor, memory::Arena& arena);

// The value as that of a parameter; monostate for what no parameter can be.
common::ParameterValue ToParameter(const JsonValue& value);

// A member of an object.
struct NamedValue {
  std::string_view name;
  const JsonValue* value;
};

// The member of `object` that counts for the key `name`: the first of several. Internal when the
// key is found under no such name, because it has a zero byte.
base::Result<NamedValue> FirstOfName(const JsonValue& object, const JsonValue& name);

}  // namespace nereid::http
