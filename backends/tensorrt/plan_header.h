// SPDX-License-Identifier: Apache-2.0
// The first bytes of a plan, which say by which TensorRT it was made. They are read before the
// driver and TensorRT are opened, so that a wrong file is refused with its reason on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "backend_kit/error.h"

namespace nereid::tensorrt {

// What a plan says of itself. Immutable.
struct PlanHeader {
  int major = 0;
  int minor = 0;
  int patch = 0;
  int build = 0;
  uint64_t file_size = 0;      // of the file
  uint64_t declared_size = 0;  // by the header; 0 if the header says none

  std::string version() const;
};

// Returns the header of the regular file at `path`; reads at most its first 64 bytes. Fails for
// what is not a plan of TensorRT.
backend::Result<PlanHeader> ReadPlanHeader(const std::string& path);

// The same for the first bytes of a file of `file_size` bytes.
backend::Result<PlanHeader> ParsePlanHeader(std::span<const char> start, uint64_t file_size);

}  // namespace nereid::tensorrt
