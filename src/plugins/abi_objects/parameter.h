// SPDX-License-Identifier: Apache-2.0
// A named value that crosses the C API on its own: a metric label, an option of a model load.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "triton/core/tritonserver.h"

// A parameter. Immutable.
struct TRITONSERVER_Parameter {
  // Bytes that the caller owns.
  struct Bytes {
    const void* data;
    uint64_t size;
  };

  std::string name;
  std::variant<std::string, int64_t, bool, double, Bytes> value;
};
