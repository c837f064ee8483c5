// SPDX-License-Identifier: Apache-2.0
// What a thread has had of the machine.
#pragma once

#include <cstdint>

namespace nereid::base {

// What the calling thread has had so far; differences of two readings by the same thread mean
// something.
struct ThreadUse {
  uint64_t cpu_ns = 0;
  uint64_t waits = 0;  // how often it left its processor of its own accord, to wait for something

  // Two system calls: a microsecond.
  static ThreadUse Now();
};

}  // namespace nereid::base
