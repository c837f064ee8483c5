// SPDX-License-Identifier: Apache-2.0
#include "engine/measured_load.h"

#include <algorithm>
#include <utility>

namespace nereid::engine {
namespace {

// Adds to `bytes` what more is in use than before, or takes off what is less.
MemoryBytes ChangedBy(const MeasuredLoad& load, MemoryBytes bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] += load.after[i];
    bytes[i] -= std::min(bytes[i], load.before[i]);
  }
  return bytes;
}

}  // namespace

MemoryBytes MeasuredLoad::Grown() const { return ChangedBy(*this, MemoryBytes(after.size())); }

MemoryBytes MeasuredLoad::BytesOf(const std::optional<MemoryBytes>& known, bool was_loaded) const {
  if (known && !is_exact) return *known;
  // A model that was replaced takes what it took before, and what it has grown by.
  return known && was_loaded ? ChangedBy(*this, *known) : Grown();
}

MeasuredLoad LoadMeasured(DemandHost& host, const std::string& name,
                          const service::LoadOptions& options) {
  MeasuredLoad load;
  // A version that is torn down meanwhile would make the model look smaller than it is, and one
  // that was replaced and is still there, larger.
  const bool is_free_before = host.AwaitTeardown(name);
  load.before = host.MeasureMemory();
  const auto start = std::chrono::steady_clock::now();
  load.status = host.Load(name, options);
  load.took = std::chrono::steady_clock::now() - start;
  load.is_exact = host.AwaitTeardown(name) && is_free_before;
  load.after = host.MeasureMemory();
  return load;
}

}  // namespace nereid::engine
