// SPDX-License-Identifier: Apache-2.0
// How much a configuration may ask for. Clients that may load models send configurations, too: what
// one of them costs before its first request must be bounded by more than the width of an integer.
// docs/differences.md tells users.
#pragma once

#include <cstdint>

namespace nereid::config {

// Instances of one version of a model, all groups and devices together. Each has a thread, or a
// process.
inline constexpr int64_t kMaxInstances = 4096;
// Sequences that one version of a model holds at the same time, all instances together.
inline constexpr int64_t kMaxSequenceSlots = int64_t{1} << 20;
// Runs of one sample of a warm-up, on each instance, and requests in each run.
inline constexpr uint32_t kMaxWarmUpRuns = 100'000;
inline constexpr uint32_t kMaxWarmUpBatch = 65'536;

}  // namespace nereid::config
