// SPDX-License-Identifier: Apache-2.0
// The controls of a sequence batcher as a backend receives them: inputs of one element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "backend_kit/bytes.h"
#include "backend_kit/tensors.h"

namespace nereid::backend {

// Returns the first bytes of the input `name`; fails if it is absent or smaller than `size`.
inline Result<std::span<const char>> ReadControlBytes(TRITONBACKEND_Request* request,
                                                      const char* name, size_t size) {
  TRITONBACKEND_Input* input = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, name, &input));
  NEREID_KIT_ASSIGN(const InputView view, ReadInput(input));
  NEREID_KIT_ASSIGN(const std::span<const char> bytes, InputBuffer(view, 0));
  if (bytes.size() < size) {
    return Error::InvalidArgument(StrCat("unexpected size of control input '", name, "'"));
  }
  return bytes;
}

// Whether the control `name` (START, END or READY) is set. REQUIRES: its false value is zero.
inline Result<bool> ReadControl(TRITONBACKEND_Request* request, const char* name) {
  NEREID_KIT_ASSIGN(const std::span<const char> bytes, ReadControlBytes(request, name, 1));
  return std::any_of(bytes.begin(), bytes.end(), [](char byte) { return byte != 0; });
}

// Returns the correlation id in the control `name` as text: a number in decimal.
inline Result<std::string> ReadCorrelationId(TRITONBACKEND_Request* request, const char* name) {
  TRITONBACKEND_Input* input = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, name, &input));
  NEREID_KIT_ASSIGN(const InputView view, ReadInput(input));
  if (view.datatype == TRITONSERVER_TYPE_BYTES) {
    NEREID_KIT_ASSIGN(const std::span<const char> bytes, InputBuffer(view, 0));
    std::string id;
    NEREID_KIT_TRY(ForEachString(bytes, 1, name, [&id](std::string_view text) { id = text; }));
    return id;
  }
  const uint32_t size = ElementByteSize(view.datatype);
  NEREID_KIT_ASSIGN(const std::span<const char> bytes, ReadControlBytes(request, name, size));
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), std::min<size_t>(size, sizeof(number)));
  return std::to_string(number);
}

}  // namespace nereid::backend
