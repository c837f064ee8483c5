// SPDX-License-Identifier: Apache-2.0
// A thread's use of the machine.
#pragma once

#include <cstdint>

namespace nereid::base {

// What the calling thread has used so far. Only differences of two readings by the same thread mean
// something.
struct ThreadUse {
  uint64_t cpu_ns = 0;
  uint64_t waits = 0;  // how often it gave up its processor to wait

  // Takes two system calls, about a microsecond.
  static ThreadUse Now();
};

}  // namespace nereid::base
