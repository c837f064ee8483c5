// SPDX-License-Identifier: Apache-2.0
// What requests are told that cannot have their model on demand. All are Unavailable, and say when
// to try again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace nereid::engine {

// A kind of memory, as errors name it.
struct MemoryKind {
  size_t index;  // among the budgets; 0: the CPU's
  const std::string& name;
};

base::Status LoadFailed(std::string_view name, const base::Status& why);
// `left` is how long the load will take by experience.
base::Status StillNotLoaded(std::string_view name, bool is_loading, base::nanoseconds waited,
                            base::nanoseconds left);
base::Status NoRoomYet(std::string_view name, MemoryKind kind, base::nanoseconds waited,
                       base::nanoseconds min_stay);
base::Status NeverFits(std::string_view name, MemoryKind kind, uint64_t bytes, uint64_t budget);
base::Status TooManyWait(std::string_view name, size_t most);

}  // namespace nereid::engine
