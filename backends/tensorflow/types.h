// SPDX-License-Identifier: Apache-2.0
// TensorFlow's types of elements, by the numbers that its files and its C API have for them.
#pragma once

#include <cstdint>
#include <string>

#include "backend_kit/error.h"

namespace nereid::tensorflow {

inline constexpr int kString = 7;  // TensorFlow's type of TRITONSERVER_TYPE_BYTES

// Returns TRITONSERVER_TYPE_INVALID for types that requests cannot have.
TRITONSERVER_DataType OurType(int theirs);
// Returns 0 for types that TensorFlow does not have.
int TheirType(TRITONSERVER_DataType ours);

// Returns 0 for types whose size is not known.
uint64_t BytesOfElement(int theirs);

// TensorFlow's name of its type, such as "DT_COMPLEX64".
std::string TheirName(int theirs);

}  // namespace nereid::tensorflow
