// SPDX-License-Identifier: Apache-2.0
// What the system lets this process use: file descriptors, memory and processors, by ulimit, by
// cgroup, and by what the machine has.
#pragma once

#include <cstdint>

#include "base/system_files.h"

namespace nereid::base {

// Readings at one moment.
struct SystemLimits {
  uint64_t descriptors = UINT64_MAX;
  uint64_t memory_bytes = UINT64_MAX;
  // What limits the memory, for messages: "the cgroup", "ulimit -v" or "the machine".
  const char* memory_source = "the machine";
  // From the affinity mask of the calling thread and the cgroup's quota, of which the rest of a
  // core counts as one.
  unsigned cpus = 1;
};

// Reads the limits of this process. What cannot be read does not limit.
SystemLimits ReadSystemLimits(const SystemFiles& files = SystemFiles());

// Returns how many processors this process may use, as its first call finds it. At least 1.
unsigned AvailableCpus();

}  // namespace nereid::base
