// SPDX-License-Identifier: Apache-2.0
#include "tensor/data_type.h"

#include <array>

namespace nereid::tensor {
namespace {

// The names and the size of one type.
struct Entry {
  std::string_view protocol;
  std::string_view config;
  size_t size;
};

// The entries are indexed by the value of DataType.
constexpr std::array<Entry, kDataTypeCount> kTypes = {{
    {"<invalid>", "TYPE_INVALID", 0},
    {"BOOL", "TYPE_BOOL", 1},
    {"UINT8", "TYPE_UINT8", 1},
    {"UINT16", "TYPE_UINT16", 2},
    {"UINT32", "TYPE_UINT32", 4},
    {"UINT64", "TYPE_UINT64", 8},
    {"INT8", "TYPE_INT8", 1},
    {"INT16", "TYPE_INT16", 2},
    {"INT32", "TYPE_INT32", 4},
    {"INT64", "TYPE_INT64", 8},
    {"FP16", "TYPE_FP16", 2},
    {"FP32", "TYPE_FP32", 4},
    {"FP64", "TYPE_FP64", 8},
    {"BYTES", "TYPE_STRING", 0},
    {"BF16", "TYPE_BF16", 2},
}};

const Entry& Of(DataType type) {
  const auto index = static_cast<size_t>(type);
  return kTypes[index < kTypes.size() ? index : 0];
}

}  // namespace

std::string_view ProtocolName(DataType type) { return Of(type).protocol; }
std::string_view ConfigName(DataType type) { return Of(type).config; }
size_t ElementSize(DataType type) { return Of(type).size; }

std::optional<DataType> FromProtocolName(std::string_view name) {
  for (size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i].protocol == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

}  // namespace nereid::tensor
