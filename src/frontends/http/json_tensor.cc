// SPDX-License-Identifier: Apache-2.0
#include "http/json_tensor.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/buffer.h"
#include "http/infer_request.h"

namespace nereid::http {
namespace {

using base::InternalError;
using base::InvalidArgumentError;
using tensor::DataType;

base::Status DepthError() {
  return InvalidArgumentError("JSON nesting depth exceeds maximum allowed limit (" +
                              std::to_string(kMaxDataDepth) + ")");
}

// Calls `leaf(value)` for every value of nested arrays, in order, until one fails.
template <typename Leaf>
base::Status ForEachLeaf(const JsonValue& value, int depth, const Leaf& leaf) {
  if (depth >= kMaxDataDepth) return DepthError();
  if (!value.IsArray()) return leaf(value);
  for (const JsonValue& element : value.GetArray()) {
    NEREID_RETURN_IF_ERROR(ForEachLeaf(element, depth + 1, leaf));
  }
  return base::OkStatus();
}

// Counts the leaves of nested arrays, to the maximum depth and up to `limit`.
size_t CountLeaves(const JsonValue& value, int depth, size_t limit) {
  if (!value.IsArray()) return 1;
  if (depth >= kMaxDataDepth) return 0;
  size_t count = 0;
  for (const JsonValue& element : value.GetArray()) {
    if (count >= limit) break;
    count += CountLeaves(element, depth + 1, limit - count);
  }
  return count;
}

template <typename T>
void Store(std::byte* memory, size_t index, T value) {
  std::memcpy(memory + index * sizeof(T), &value, sizeof(T));
}

// Writes one JSON value as element `index`. Integers that the type cannot hold wrap around, as they
// do in Triton.
base::Status StoreElement(DataType type, const JsonValue& value, std::byte* memory, size_t index) {
  switch (type) {
    case DataType::kBool:
      if (!value.IsBool()) return JsonBool(value, "").status();
      Store<uint8_t>(memory, index, value.GetBool() ? 1 : 0);
      return base::OkStatus();
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32:
    case DataType::kUint64: {
      NEREID_ASSIGN_OR_RETURN(const uint64_t number, JsonUnsigned(value, ""));
      if (type == DataType::kUint8) Store(memory, index, static_cast<uint8_t>(number));
      if (type == DataType::kUint16) Store(memory, index, static_cast<uint16_t>(number));
      if (type == DataType::kUint32) Store(memory, index, static_cast<uint32_t>(number));
      if (type == DataType::kUint64) Store(memory, index, number);
      return base::OkStatus();
    }
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64: {
      if (!value.IsInt64()) {
        return InternalError("attempt to access JSON non-signed-integer as signed-integer");
      }
      const int64_t number = value.GetInt64();
      if (type == DataType::kInt8) Store(memory, index, static_cast<int8_t>(number));
      if (type == DataType::kInt16) Store(memory, index, static_cast<int16_t>(number));
      if (type == DataType::kInt32) Store(memory, index, static_cast<int32_t>(number));
      if (type == DataType::kInt64) Store(memory, index, number);
      return base::OkStatus();
    }
    default:
      if (!value.IsNumber()) {
        return InternalError("attempt to access JSON non-number as double");
      }
      if (type == DataType::kFp32) Store(memory, index, static_cast<float>(value.GetDouble()));
      if (type == DataType::kFp64) Store(memory, index, value.GetDouble());
      return base::OkStatus();
  }
}

// Describes what a client needs to find its mistake, to follow Triton's text.
std::string DescribeCounts(const TensorDescription& tensor, size_t expected,
                           const JsonValue& data) {
  return " (input '" + std::string(tensor.name) + "': its shape has " + std::to_string(expected) +
         " elements, 'data' has " + std::to_string(CountLeaves(data, 0, SIZE_MAX)) + ")";
}

}  // namespace

base::Result<uint64_t> SerializedTextSize(const JsonValue& data) {
  uint64_t byte_size = 0;
  NEREID_RETURN_IF_ERROR(ForEachLeaf(data, 0, [&](const JsonValue& value) -> base::Status {
    NEREID_ASSIGN_OR_RETURN(const std::string_view text,
                            JsonText(value, "Unable to parse JSON bytes array"));
    byte_size += text.size() + sizeof(uint32_t);
    return base::OkStatus();
  }));
  return byte_size;
}

base::Result<core::DataChunk> ReadTexts(const JsonValue& data, uint64_t byte_size,
                                        memory::Arena& arena) {
  if (byte_size == 0) {
    return InternalError("Failed to parse 'data' field: output buffer unavailable");
  }
  std::byte* const memory = arena.Allocate(static_cast<size_t>(byte_size), base::kBufferAlignment);
  if (memory == nullptr) return base::UnavailableError("out of memory");
  std::byte* at = memory;
  NEREID_RETURN_IF_ERROR(ForEachLeaf(data, 0, [&](const JsonValue& value) {
    const uint32_t length = value.GetStringLength();
    std::memcpy(at, &length, sizeof(length));
    std::memcpy(at + sizeof(length), value.GetString(), length);
    at += sizeof(length) + length;
    return base::OkStatus();
  }));
  return core::DataChunk{memory, static_cast<size_t>(byte_size), {}};
}

base::Result<core::DataChunk> ReadNumbers(const JsonValue& data, int64_t count,
                                          const TensorDescription& tensor, memory::Arena& arena) {
  const size_t expected = static_cast<size_t>(count);
  const size_t element_size = tensor::ElementSize(tensor.type);
  // Allocates memory for the elements that exist, not for those that the shape claims.
  const size_t stored = CountLeaves(data, 0, expected);
  std::byte* const memory =
      arena.Allocate(std::max<size_t>(stored, 1) * element_size, base::kBufferAlignment);
  if (memory == nullptr) return base::UnavailableError("out of memory");
  size_t done = 0;
  const base::Status status = ForEachLeaf(data, 0, [&](const JsonValue& value) -> base::Status {
    if (done >= expected || done >= stored) {
      return InvalidArgumentError("Shape does not match true shape of 'data' field" +
                                  DescribeCounts(tensor, expected, data));
    }
    NEREID_RETURN_IF_ERROR(StoreElement(tensor.type, value, memory, done));
    ++done;
    return base::OkStatus();
  });
  if (!status.ok()) return status.WithPrefix("Unable to parse 'data': ");
  if (done != expected) {
    return InvalidArgumentError("Failed to parse 'data' field: shape does not match true shape" +
                                DescribeCounts(tensor, expected, data));
  }
  return core::DataChunk{memory, expected * element_size, {}};
}

common::ParameterValue ToParameter(const JsonValue& value) {
  if (value.IsString()) return std::string_view(value.GetString(), value.GetStringLength());
  if (value.IsInt64()) return value.GetInt64();
  if (value.IsUint64()) return value.GetUint64();
  if (value.IsBool()) return value.GetBool();
  if (value.IsNumber()) return value.GetDouble();
  return std::monostate();
}

base::Result<NamedValue> FirstOfName(const JsonValue& object, const JsonValue& name) {
  const std::string_view text = common::CutAtZero({name.GetString(), name.GetStringLength()});
  const std::string terminated(text);
  const JsonValue* const value = FindMember(object, terminated.c_str());
  if (value == nullptr) {
    return InternalError("parameter key '" + terminated + "' was not found in the JSON");
  }
  return NamedValue{text, value};
}

}  // namespace nereid::http
