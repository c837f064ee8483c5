// SPDX-License-Identifier: Apache-2.0
// Checks of invariants. A failed check is a bug of ours and unreachable from input; it aborts with
// the place and the condition.
#pragma once

namespace nereid::base {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace nereid::base

#define NEREID_CHECK(condition)                                    \
  do {                                                             \
    if (!(condition)) [[unlikely]] {                               \
      ::nereid::base::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                              \
  } while (false)
