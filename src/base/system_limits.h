// SPDX-License-Identifier: Apache-2.0
// What the system lets this process use: file descriptors and memory, by ulimit, by cgroup, and by
// what the machine has.
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
};

// Reads the limits of this process. What cannot be read does not limit.
SystemLimits ReadSystemLimits(const SystemFiles& files = SystemFiles());

}  // namespace nereid::base
