// SPDX-License-Identifier: Apache-2.0
// What backends say about the memory that they hold.
#pragma once

#include <span>
#include <vector>

#include "abi_objects/buffer_attributes.h"
#include "base/status.h"
#include "core/statistics.h"

namespace nereid::backend_host {

// Of several reports about one device the last counts, as in Triton. InvalidArgument for a kind of
// memory that there is not.
base::Result<std::vector<core::MemoryUse>> ToMemoryUse(
    std::span<TRITONSERVER_BufferAttributes* const> usage);

}  // namespace nereid::backend_host
