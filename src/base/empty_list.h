// SPDX-License-Identifier: Apache-2.0
// Clears the lists of pooled objects between uses.
#pragma once

#include <cstddef>
#include <vector>

namespace nereid::base {

// Clears a list but keeps its memory for the next use, unless that is more than most uses need: one
// large request must not hold memory for good.
template <typename Item>
void EmptyList(std::vector<Item>& items) {
  constexpr size_t kKept = 256;
  if (items.size() > kKept) [[unlikely]] {
    std::vector<Item>().swap(items);
  } else {
    items.clear();
  }
}

}  // namespace nereid::base
