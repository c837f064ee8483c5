// SPDX-License-Identifier: Apache-2.0
#include "engine/model_use.h"

#include <algorithm>

namespace nereid::engine {

std::set<std::string> ModelUse::Update(const ModelActivities& activities, EvictionPolicy& policy,
                                       base::TimePoint now) {
  std::set<std::string> busy;
  for (const std::string& name : policy.Loaded()) {
    if (!activities.contains(name)) policy.NoteUnloaded(name);
  }
  std::erase_if(seen_, [&](const auto& entry) { return !activities.contains(entry.first); });
  for (const auto& [name, activity] : activities) {
    uint64_t& seen = seen_[name];
    const uint64_t fresh = activity.requests - std::min(activity.requests, seen);
    seen = std::max(seen, activity.requests);
    if (fresh > 0) policy.NoteUses(name, fresh, now);
    if (activity.is_busy) {
      policy.NoteBusy(name, now);
      busy.insert(name);
    }
    busy.insert(activity.parts.begin(), activity.parts.end());
    const bool has_busy_part = std::ranges::any_of(activity.parts, [&](const std::string& part) {
      const auto found = activities.find(part);
      return found != activities.end() && found->second.is_busy;
    });
    if (has_busy_part) busy.insert(name);
  }
  return busy;
}

}  // namespace nereid::engine
