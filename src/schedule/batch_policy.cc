// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_policy.h"

#include <algorithm>
#include <ranges>

namespace nereid::schedule {

BatchPolicy BatchPolicy::FromConfig(const config::ModelConfig& config) {
  BatchPolicy policy;
  policy.max_batch_size = static_cast<size_t>(std::max(config.max_batch_size, 1));
  const config::DynamicBatching* dynamic = config.dynamic_batching();
  if (dynamic == nullptr) return policy;
  policy.is_dynamic = true;
  for (const int32_t size : dynamic->preferred_batch_size) {
    if (size > 0) policy.preferred_batch_sizes.push_back(static_cast<size_t>(size));
  }
  std::ranges::sort(policy.preferred_batch_sizes);
  policy.max_queue_delay =
      std::chrono::microseconds(std::min(dynamic->max_queue_delay_microseconds, kMaxQueueUs));
  policy.preserves_order = dynamic->preserve_ordering;
  policy.priority_levels = dynamic->priority_levels;
  policy.default_priority_level = dynamic->default_priority_level;
  policy.default_queue_policy = dynamic->default_queue_policy.value_or(config::QueuePolicy());
  policy.priority_queue_policy = dynamic->priority_queue_policy;
  return policy;
}

bool BatchPolicy::HasTimeouts() const {
  const auto has_timeout = [](const config::QueuePolicy& policy) {
    return policy.default_timeout_microseconds != 0;
  };
  return has_timeout(default_queue_policy) ||
         std::ranges::any_of(priority_queue_policy | std::views::values, has_timeout);
}

}  // namespace nereid::schedule
