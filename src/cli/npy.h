// SPDX-License-Identifier: Apache-2.0
// NumPy's files of one array (.npy), as the elements of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/data_type.h"

namespace nereid::cli {

// An array from a file, with its elements as elements.h describes them.
struct NpyArray {
  tensor::DataType type = tensor::DataType::kInvalid;
  std::vector<int64_t> shape;
  std::string bytes;
};

// Reads an array in C order of numbers, booleans, byte strings or texts (the last two become
// BYTES). An error says what is wrong with the file, without its name.
base::Result<NpyArray> ReadNpy(std::string_view file);

// Returns the content of a file. BF16, which NumPy does not know, becomes FP32; BYTES become byte
// strings as long as the longest, which loses zeros at their ends.
base::Result<std::string> WriteNpy(tensor::DataType type, const std::vector<int64_t>& shape,
                                   std::string_view bytes);

}  // namespace nereid::cli
