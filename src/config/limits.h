// SPDX-License-Identifier: Apache-2.0
// Limits of what a configuration may request. Clients that may load models also send
// configurations, so the cost of one before its first request must be bounded by more than the
// width of an integer. docs/differences.md documents the limits.
#pragma once

#include <cstdint>

namespace nereid::config {

// Instances of one version of a model, over all groups and devices. Each has a thread or a process.
inline constexpr int64_t kMaxInstances = 4096;
// Sequences that one version of a model holds at the same time, over all instances.
inline constexpr int64_t kMaxSequenceSlots = int64_t{1} << 20;
// Executions of one warm-up sample on each instance, and requests in each execution.
inline constexpr uint32_t kMaxWarmUpRuns = 100'000;
inline constexpr uint32_t kMaxWarmUpBatch = 65'536;

}  // namespace nereid::config
