// SPDX-License-Identifier: Apache-2.0
// The values of shape tensors, which determine shapes and are in the host's memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend_kit/shape.h"

namespace nereid::tensorrt {

// Reads values of the type INT32 or INT64.
std::vector<int64_t> ToValues(std::span<const char> bytes, TRITONSERVER_DataType type);

// Writes values as numbers of one of these types.
void StoreValues(std::span<const int64_t> values, TRITONSERVER_DataType type, char* to);

}  // namespace nereid::tensorrt
