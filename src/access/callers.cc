// SPDX-License-Identifier: Apache-2.0
#include "access/callers.h"

#include <algorithm>

namespace nereid::access {

core::CallerRef CallerTable::Get(std::string_view id, const core::CallerLimits& limits) {
  base::MutexLock lock(mutex_);
  const auto found = callers_.find(id);
  if (found != callers_.end()) {
    core::CallerRef caller = found->second.lock();
    if (caller != nullptr && caller->limits == limits) return caller;
  }
  auto made = std::make_shared<const core::Caller>(core::Caller{std::string(id), limits});
  callers_.insert_or_assign(std::string(id), made);
  if (callers_.size() >= cleans_at_) ForgetUnused();
  return made;
}

void CallerTable::ForgetUnused() {
  std::erase_if(callers_, [](const auto& entry) { return entry.second.expired(); });
  cleans_at_ = std::max<size_t>(64, 2 * callers_.size());
}

}  // namespace nereid::access
