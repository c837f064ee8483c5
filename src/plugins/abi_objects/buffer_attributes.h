// SPDX-License-Identifier: Apache-2.0
// Size and location of a buffer in the C API.
#pragma once

#include <cstddef>
#include <optional>

#include "memory/memory_type.h"
#include "triton/core/tritonserver.h"

// Trivially destructible, so that it may be in an arena. Thread-compatible.
struct TRITONSERVER_BufferAttributes {
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  size_t byte_size = 0;
  void* cuda_ipc_handle = nullptr;
};

namespace nereid::abi_objects {

// The values of both enumerations are the same.
inline TRITONSERVER_MemoryType ToMemoryType(memory::MemoryType type) {
  return static_cast<TRITONSERVER_MemoryType>(type);
}
// Returns nothing for a number that is not a memory type.
std::optional<memory::MemoryType> FromMemoryType(TRITONSERVER_MemoryType type);

}  // namespace nereid::abi_objects
