// SPDX-License-Identifier: Apache-2.0
// The limits that the control groups of this process set: those of containers and of services.
#pragma once

#include <cstdint>
#include <optional>

#include "base/system_files.h"

namespace nereid::base {

// What the groups permit; nothing where there is no limit.
struct ControlGroupLimits {
  std::optional<uint64_t> memory_bytes;
  uint64_t memory_used_bytes = 0;  // of the group that limits it; files in memory excluded
  std::optional<double> cpus;      // the quota, in cores
  std::optional<uint64_t> tasks;
};

// Reads both versions of control groups. The strictest group on the way to the root counts.
ControlGroupLimits ReadControlGroups(const SystemFiles& files);

}  // namespace nereid::base
