// SPDX-License-Identifier: Apache-2.0
// Kinds of memory and where they are.
#pragma once

#include <cstdint>
#include <string_view>

namespace nereid::memory {

// The values are those of TRITONSERVER_MemoryType.
enum class MemoryType : uint8_t { kCpu = 0, kCpuPinned = 1, kGpu = 2 };

// Returns the name that statistics print.
constexpr std::string_view MemoryTypeName(MemoryType type) {
  switch (type) {
    case MemoryType::kCpu:
      return "CPU";
    case MemoryType::kCpuPinned:
      return "CPU_PINNED";
    case MemoryType::kGpu:
      break;
  }
  return "GPU";
}

// A kind of memory and the device it belongs to (0 for CPU memory).
struct Placement {
  MemoryType type = MemoryType::kCpu;
  int64_t id = 0;

  bool operator==(const Placement&) const = default;
};

}  // namespace nereid::memory
