// SPDX-License-Identifier: Apache-2.0
// The elements of tensors as bytes, as they are sent: in rows, little-endian, each element of BYTES
// behind its length in four bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/data_type.h"

namespace nereid::cli {

// How generated inputs are filled.
enum class Filling { kZeros, kRandom };

// Returns `count` generated elements. Random floating-point numbers are from 0 to 1, integers from
// 0 to 99; elements of BYTES are empty or short words. The same seed gives the same elements. Fails
// if that would be more than 1 GiB.
base::Result<std::string> GenerateElements(tensor::DataType type, int64_t count, Filling filling,
                                           uint64_t seed);

// Returns up to `limit` elements as a JSON array, with " ..." in place of those that are left out.
// Bytes of texts that are not UTF-8 become U+FFFD. Fails if the bytes do not make whole elements.
base::Result<std::string> ElementsText(tensor::DataType type, std::string_view bytes, size_t limit);

// Splits the elements of a BYTES tensor. Returns nothing if a length is wrong.
std::optional<std::vector<std::string_view>> SplitBytes(std::string_view bytes);
// Appends an element of a BYTES tensor.
void AppendBytes(std::string& out, std::string_view element);

float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);  // of numbers from 0 to 1, rounded to nearest
float Bfloat16ToFloat(uint16_t value);

}  // namespace nereid::cli
