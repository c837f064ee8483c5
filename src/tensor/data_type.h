// SPDX-License-Identifier: Apache-2.0
// The element types of tensors, their wire names and sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace nereid::tensor {

// The values are those of TRITONSERVER_DataType and of model_config.proto's DataType.
enum class DataType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kUint8 = 2,
  kUint16 = 3,
  kUint32 = 4,
  kUint64 = 5,
  kInt8 = 6,
  kInt16 = 7,
  kInt32 = 8,
  kInt64 = 9,
  kFp16 = 10,
  kFp32 = 11,
  kFp64 = 12,
  kBytes = 13,  // TYPE_STRING in configurations, BYTES on the wire
  kBf16 = 14,
};

// Returns the name that protocols use: "FP32", "BYTES", ...; "<invalid>" for kInvalid.
std::string_view ProtocolName(DataType type);
// Returns the name that configurations use: "TYPE_FP32", "TYPE_STRING", ...
std::string_view ConfigName(DataType type);
// Returns the type of a protocol name, or nothing if the name is unknown.
std::optional<DataType> FromProtocolName(std::string_view name);
// Returns the bytes of one element; 0 for kBytes (elements have their own lengths) and kInvalid.
size_t ElementSize(DataType type);

// One past the largest value of DataType.
inline constexpr int kDataTypeCount = 15;

}  // namespace nereid::tensor
