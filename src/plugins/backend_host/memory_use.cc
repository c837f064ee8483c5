// SPDX-License-Identifier: Apache-2.0
#include "backend_host/memory_use.h"

#include <algorithm>

namespace nereid::backend_host {

base::Result<std::vector<core::MemoryUse>> ToMemoryUse(
    std::span<TRITONSERVER_BufferAttributes* const> usage) {
  std::vector<core::MemoryUse> list;
  for (const TRITONSERVER_BufferAttributes* const attributes : usage) {
    const auto type = abi_objects::FromMemoryType(attributes->memory_type);
    if (!type) return base::InvalidArgumentError("unknown type of memory in a memory usage report");
    const memory::Placement where{*type, attributes->memory_type_id};
    const auto known = std::ranges::find(list, where, &core::MemoryUse::where);
    if (known != list.end()) {
      known->bytes = attributes->byte_size;
    } else {
      list.push_back({where, attributes->byte_size});
    }
  }
  return list;
}

}  // namespace nereid::backend_host
