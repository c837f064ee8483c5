// SPDX-License-Identifier: Apache-2.0
#include "engine/model_use.h"

#include <algorithm>
#include <vector>

namespace nereid::engine {
namespace {

// Models with a guess of what each takes.
using Guesses = std::map<std::string, MemoryBytes>;

// Divides `bytes` among those of `guesses` that are in `heirs`.
void Divide(const MemoryBytes& bytes, const std::set<std::string>& heirs, Guesses& guesses) {
  std::vector<MemoryBytes*> present;
  for (auto& [name, guess] : guesses) {
    if (heirs.contains(name)) present.push_back(&guess);
  }
  for (MemoryBytes* const guess : present) {
    guess->resize(std::max(guess->size(), bytes.size()));
    for (size_t i = 0; i < bytes.size(); ++i) (*guess)[i] += bytes[i] / present.size();
  }
}

}  // namespace

std::set<std::string> ModelUse::Update(const ModelActivities& activities, EvictionPolicy& policy,
                                       base::TimePoint now, const MemoryBytes& unclaimed) {
  std::set<std::string> busy;
  for (const std::string& name : policy.Loaded()) {
    if (!activities.contains(name)) policy.NoteUnloaded(name);
  }
  Adopt(activities, policy, now, unclaimed);
  std::erase_if(seen_, [&](const auto& entry) { return !activities.contains(entry.first); });
  std::map<std::string, uint64_t> uses;
  for (const auto& [name, activity] : activities) uses[name] = TakeNew(activity, seen_[name]);
  for (const auto& [name, activity] : activities) {
    uint64_t fresh = uses[name];
    bool is_busy = activity.is_busy;
    for (const std::string& part : activity.parts) {
      const auto found = activities.find(part);
      if (found == activities.end()) continue;
      if (found->second.is_busy) busy.insert(name);
      if (policy.IsLoaded(part)) continue;
      // The part is unloaded with the ensemble, so a use of the part is one of the ensemble.
      fresh = std::max(fresh, uses[part]);
      is_busy |= found->second.is_busy;
    }
    if (fresh > 0) policy.NoteUses(name, fresh, now);
    if (is_busy) {
      policy.NoteBusy(name, now);
      busy.insert(name);
    }
    policy.NoteParts(name, activity.parts);
  }
  return busy;
}

uint64_t ModelUse::TakeNew(const ModelActivity& activity, Seen& seen) {
  uint64_t fresh = 0;
  for (const auto& [version, requests] : activity.requests) {
    const auto before = seen.requests.find(version);
    // The statistics of a version that was replaced begin at zero again.
    const bool has_begun_again = before == seen.requests.end() || requests < before->second;
    fresh += has_begun_again ? requests : requests - before->second;
  }
  seen.requests = activity.requests;
  const uint64_t known = std::min(fresh, seen.ahead);
  seen.ahead -= known;
  return fresh - known;
}

void ModelUse::Adopt(const ModelActivities& activities, EvictionPolicy& policy, base::TimePoint now,
                     const MemoryBytes& unclaimed) {
  // The memory of a part is counted with its ensemble, and it goes with that.
  std::set<std::string> needed;
  for (const auto& [name, activity] : activities) {
    needed.insert(activity.parts.begin(), activity.parts.end());
  }
  // Unless that has gone, and another one keeps the part.
  std::set<std::string> left;
  for (const auto& [ensemble, parts] : parts_) {
    if (!activities.contains(ensemble)) left.insert(parts.begin(), parts.end());
  }
  Guesses found;
  std::set<std::string> names;
  for (const auto& [name, activity] : activities) {
    if (policy.IsLoaded(name) || (needed.contains(name) && !left.contains(name))) continue;
    found[name];
    names.insert(name);
  }
  Divide(unclaimed, names, found);
  // What an ensemble took is what its parts take, some of which have stayed.
  for (const auto& [ensemble, parts] : parts_) {
    if (activities.contains(ensemble)) continue;
    Divide(policy.KnownBytes(ensemble).value_or(MemoryBytes()), parts, found);
  }
  for (const auto& [name, guess] : found) policy.NoteFound(name, guess, now);
  parts_.clear();
  for (const auto& [name, activity] : activities) {
    if (!activity.parts.empty()) parts_[name] = activity.parts;
  }
}

}  // namespace nereid::engine
