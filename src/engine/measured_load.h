// SPDX-License-Identifier: Apache-2.0
// A load of a model on demand, with what it took.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/demand_host.h"
#include "engine/eviction_policy.h"
#include "service/service.h"

namespace nereid::engine {

// What came of a load. A value type.
struct MeasuredLoad {
  base::Status status;
  std::chrono::nanoseconds took{0};
  MemoryBytes before;     // in use
  MemoryBytes after;      // the same, after it
  bool is_exact = false;  // no other version of the model came or went between the two

  // Returns how much more is in use than before, where it is more.
  MemoryBytes Grown() const;
  // Returns what the model takes now. `known` is what it took before, if that is known, and
  // `was_loaded` says whether it took that until now.
  MemoryBytes BytesOf(const std::optional<MemoryBytes>& known, bool was_loaded) const;
};

// Loads a model and measures that. REQUIRES: no other load is in progress. Blocks.
MeasuredLoad LoadMeasured(DemandHost& host, const std::string& name,
                          const service::LoadOptions& options);

}  // namespace nereid::engine
