// SPDX-License-Identifier: Apache-2.0
// The layout of BYTES tensors: for each element a little-endian uint32 length and that many bytes,
// without gaps.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::backend {

// Reads a length prefix from any address.
inline uint32_t LoadLength(const char* from) {
  unsigned char b[4];
  std::memcpy(b, from, sizeof(b));
  return uint32_t{b[0]} | uint32_t{b[1]} << 8 | uint32_t{b[2]} << 16 | uint32_t{b[3]} << 24;
}

// Writes one element and returns its end. REQUIRES: `to` has room for 4 + text.size() bytes.
inline char* StoreString(char* to, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  const unsigned char b[4] = {
      static_cast<unsigned char>(length), static_cast<unsigned char>(length >> 8),
      static_cast<unsigned char>(length >> 16), static_cast<unsigned char>(length >> 24)};
  std::memcpy(to, b, sizeof(b));
  if (!text.empty()) {
    std::memcpy(to + sizeof(b), text.data(), text.size());
  }
  return to + sizeof(b) + text.size();
}

// Calls visit(std::string_view) for each of the `expected` elements in `data`. Fails, perhaps after
// some visits, if there are more or fewer elements, or if the last one is incomplete; clients of
// Triton know the error texts. The views point into `data`.
template <typename Visit>
Error ForEachString(std::span<const char> data, int64_t expected, std::string_view input_name,
                    Visit&& visit) {
  const char* next = data.data();
  size_t left = data.size();
  int64_t seen = 0;
  while (left >= sizeof(uint32_t)) {
    if (seen >= expected) {
      return Error::InvalidArgument(StrCat("unexpected number of string elements ", seen + 1,
                                           " for inference input '", input_name, "', expecting ",
                                           expected));
    }
    const uint32_t length = LoadLength(next);
    next += sizeof(uint32_t);
    left -= sizeof(uint32_t);
    if (left < length) {
      return Error::InvalidArgument(StrCat("incomplete string data for inference input '",
                                           input_name, "', expecting string of length ", length,
                                           " but only ", left, " bytes available"));
    }
    visit(std::string_view(next, length));
    next += length;
    left -= length;
    ++seen;
  }
  if (seen != expected) {
    return Error::Internal(StrCat("expected ", expected, " strings for inference input '",
                                  input_name, "', got ", seen));
  }
  if (left != 0) {
    return Error::InvalidArgument(StrCat("incomplete string length indicator for inference input '",
                                         input_name, "', expecting 4 bytes but only ", left,
                                         " bytes available"));
  }
  return {};
}

}  // namespace nereid::backend
