// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/shape_values.h"

#include <cstring>

namespace nereid::tensorrt {

std::vector<int64_t> ToValues(std::span<const char> bytes, TRITONSERVER_DataType type) {
  const size_t element = backend::ElementByteSize(type);
  std::vector<int64_t> values(bytes.size() / element);
  for (size_t v = 0; v < values.size(); ++v) {
    if (type == TRITONSERVER_TYPE_INT32) {
      int32_t narrow = 0;
      std::memcpy(&narrow, bytes.data() + v * element, element);
      values[v] = narrow;
    } else {
      std::memcpy(&values[v], bytes.data() + v * element, element);
    }
  }
  return values;
}

void StoreValues(std::span<const int64_t> values, TRITONSERVER_DataType type, char* to) {
  for (const int64_t value : values) {
    if (type == TRITONSERVER_TYPE_INT32) {
      const auto narrow = static_cast<int32_t>(value);  // is in the range of the profile
      std::memcpy(to, &narrow, sizeof(narrow));
      to += sizeof(narrow);
    } else {
      std::memcpy(to, &value, sizeof(value));
      to += sizeof(value);
    }
  }
}

}  // namespace nereid::tensorrt
