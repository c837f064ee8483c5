// SPDX-License-Identifier: Apache-2.0
// What a model's configuration says about its queue.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "config/model_config.h"
#include "core/request.h"

namespace nereid::schedule {

// The largest number of microseconds that fits the clock as nanoseconds.
inline constexpr uint64_t kMaxQueueUs = UINT64_C(9'000'000'000'000'000);

// How a model's requests are queued and batched.
struct BatchPolicy {
  // Off: every request runs alone, as soon as an instance is free.
  bool is_dynamic = false;
  size_t max_batch_size = 1;
  // Ascending; empty means {max_batch_size}.
  std::vector<size_t> preferred_batch_sizes;
  // How long the oldest request may wait for a preferred size to be reached.
  base::nanoseconds max_queue_delay{0};
  bool preserves_order = false;
  uint64_t priority_levels = 0;  // 1 is served first; 0: no levels
  uint64_t default_priority_level = 0;
  config::QueuePolicy default_queue_policy;
  std::map<uint64_t, config::QueuePolicy> priority_queue_policy;
  // Nothing runs before so many requests have waited at the same time, once. Lets a test prepare a
  // queue.
  size_t hold_until_waiting = 0;

  static BatchPolicy FromConfig(const config::ModelConfig& config);
  // The level at which a request waits.
  uint64_t PriorityOf(const core::Request& request) const {
    if (priority_levels == 0) return 0;
    const bool is_valid = request.priority > 0 && request.priority <= priority_levels;
    return is_valid ? request.priority : default_priority_level;
  }
  const config::QueuePolicy& PolicyAt(uint64_t priority) const {
    if (priority_queue_policy.empty()) return default_queue_policy;
    const auto own = priority_queue_policy.find(priority);
    return own == priority_queue_policy.end() ? default_queue_policy : own->second;
  }
  // Whether requests of any level have a time after which they lose their turn.
  bool HasTimeouts() const;
};

}  // namespace nereid::schedule
