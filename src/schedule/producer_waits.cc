// SPDX-License-Identifier: Apache-2.0
#include "schedule/producer_waits.h"

#include <algorithm>
#include <set>

namespace nereid::schedule {

bool ProducerWaits::Begin(const Models& models) {
  base::MutexLock lock(mutex_);
  std::set<std::string_view> awaited(models.behind.begin(), models.behind.end());
  const auto is_awaited = [&](const std::string& model) { return awaited.contains(model); };
  for (bool has_grown = true; has_grown;) {
    const size_t before = awaited.size();
    for (const Models* const other : waits_) {
      if (!std::ranges::any_of(other->waiting, is_awaited)) continue;
      awaited.insert(other->behind.begin(), other->behind.end());
    }
    has_grown = awaited.size() > before;
  }
  if (std::ranges::any_of(models.waiting, is_awaited)) return false;
  waits_.push_back(&models);
  return true;
}

void ProducerWaits::End(const Models& models) {
  base::MutexLock lock(mutex_);
  waits_.erase(std::ranges::find(waits_, &models));
}

}  // namespace nereid::schedule
