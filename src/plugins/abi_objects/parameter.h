// SPDX-License-Identifier: Apache-2.0
// A named value that crosses the C API by itself: a metric label, an option of a model load.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "triton/core/tritonserver.h"

// Immutable.
struct TRITONSERVER_Parameter {
  // A block that stays its owner's.
  struct Bytes {
    const void* data;
    uint64_t size;
  };

  std::string name;
  std::variant<std::string, int64_t, bool, double, Bytes> value;
};
