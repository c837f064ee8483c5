// SPDX-License-Identifier: Apache-2.0
// From parsed JSON to the tensors and parameters of a request, in Triton's words: what the exact
// reader of infer heads and the reader of generate requests have in common. Nested arrays are
// walked to a depth of kMaxDataDepth and no further. Private to this module.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "core/request.h"
#include "http/json_dom.h"

namespace nereid::http {

// Names end at a zero byte, as they do for every client of the C API.
std::string_view AsName(std::string_view text);

// Bytes of a BYTES tensor with the texts of `data` as its elements.
base::Result<uint64_t> SerializedTextSize(const JsonValue& data);
// Gives `input` these texts. `byte_size` is their SerializedTextSize.
base::Status AppendTexts(const JsonValue& data, uint64_t byte_size, core::Request& request,
                         core::RequestInput& input);
// Gives `input`, which is of a type with a fixed element size, exactly `count` elements.
base::Status AppendNumbers(const JsonValue& data, int64_t count, core::Request& request,
                           core::RequestInput& input);

// Adds a parameter for the model.
base::Status AppendParameter(std::string_view name, const JsonValue& value, core::Request& request);

}  // namespace nereid::http
