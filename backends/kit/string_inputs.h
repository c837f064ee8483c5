// SPDX-License-Identifier: Apache-2.0
// The data of inputs that have BYTES, each in one piece, with the number of elements checked.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backend_kit/bytes.h"
#include "backend_kit/tensors.h"

namespace nereid::backend {

// The inputs of one batch after the other. Confined to the thread that executes.
class StringInputs {
 public:
  // Reads an input, which from now on has the number `at`.
  Error Read(size_t at, const InputView& input) {
    if (data_.size() <= at) {
      data_.resize(at + 1);
      gathered_.resize(at + 1);
    }
    NEREID_KIT_ASSIGN(data_[at], ContiguousInput(input, 0, gathered_[at]));
    NEREID_KIT_ASSIGN(const int64_t elements, ElementCount(input.shape));
    return ForEachString(data_[at], elements, input.name, [](std::string_view) {});
  }

  // The data of an input that was read, valid until its number is read again.
  std::span<const char> data(size_t at) const { return data_[at]; }

 private:
  std::vector<std::span<const char>> data_;
  std::vector<ScratchBuffer> gathered_;  // copies of inputs that are in pieces
};

}  // namespace nereid::backend
