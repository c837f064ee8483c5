// SPDX-License-Identifier: Apache-2.0
// The reports of backends about the memory that they hold.
#pragma once

#include <span>
#include <vector>

#include "abi_objects/buffer_attributes.h"
#include "base/status.h"
#include "core/statistics.h"

namespace nereid::backend_host {

// Converts a report. As in Triton, the last entry for a device counts. InvalidArgument for an
// unknown kind of memory.
base::Result<std::vector<core::MemoryUse>> ToMemoryUse(
    std::span<TRITONSERVER_BufferAttributes* const> usage);

}  // namespace nereid::backend_host
