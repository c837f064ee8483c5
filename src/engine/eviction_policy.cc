// SPDX-License-Identifier: Apache-2.0
#include "engine/eviction_policy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace nereid::engine {
namespace {

using Seconds = std::chrono::duration<double>;

// Nothing loads faster than that: differences below are noise.
constexpr std::chrono::milliseconds kShortestLoad{1};
// The smallest share of a budget that counts, for the same reason.
constexpr double kMinShare = 1e-6;

bool IsNothing(const MemoryBytes& bytes) {
  return std::ranges::all_of(bytes, [](uint64_t count) { return count == 0; });
}

size_t FirstOf(const MemoryBytes& missing) {
  const auto first = std::ranges::find_if(missing, [](uint64_t bytes) { return bytes > 0; });
  return static_cast<size_t>(first - missing.begin());
}

void TakeFrom(MemoryBytes& missing, const MemoryBytes& freed) {
  for (size_t i = 0; i < missing.size(); ++i) missing[i] -= std::min(missing[i], freed[i]);
}

}  // namespace

EvictionPolicy::EvictionPolicy(EvictionOptions options)
    : options_(std::move(options)), used_(options_.budgets.size()) {}

void EvictionPolicy::NoteUses(const std::string& name, uint64_t uses, base::TimePoint now) {
  Entry& entry = entries_[name];
  const double half_lives = Seconds(now - entry.uses_at) / Seconds(options_.half_life);
  entry.uses = entry.uses * std::exp2(-half_lives) + static_cast<double>(uses);
  entry.uses_at = now;
  if (uses > 0) entry.last_use = now;
}

void EvictionPolicy::NoteBusy(const std::string& name, base::TimePoint now) {
  if (const auto found = loaded_.find(name); found != loaded_.end()) found->second->last_use = now;
}

void EvictionPolicy::NoteLoaded(const std::string& name, const MemoryBytes& bytes,
                                std::chrono::nanoseconds took, base::TimePoint now) {
  const bool is_replaced = IsLoaded(name);
  Entry& entry = entries_[name];
  if (is_replaced) TakeFrom(used_, entry.bytes);
  const bool is_new = is_replaced || !entry.has_bytes || std::exchange(entry.is_distrusted, false);
  entry.bytes.resize(used_.size());
  for (size_t i = 0; i < used_.size(); ++i) {
    const uint64_t measured = i < bytes.size() ? bytes[i] : 0;
    const uint64_t before = is_new ? measured : entry.bytes[i];
    // Rounded up, so that sums of many models are not less than what these take.
    entry.bytes[i] = std::midpoint(std::max(before, measured), std::min(before, measured));
  }
  entry.has_bytes = true;
  entry.duration = entry.duration.count() == 0 ? took : (entry.duration + took) / 2;
  SetLoaded(name, entry, now);
}

void EvictionPolicy::NoteFound(const std::string& name, const MemoryBytes& guess,
                               base::TimePoint now) {
  Entry& entry = entries_[name];
  if (entry.is_loaded) return;
  if (!entry.has_bytes) entry.bytes = guess;
  entry.bytes.resize(used_.size());
  SetLoaded(name, entry, now);
}

void EvictionPolicy::SetLoaded(const std::string& name, Entry& entry, base::TimePoint now) {
  for (size_t i = 0; i < used_.size(); ++i) used_[i] += entry.bytes[i];
  entry.is_loaded = true;
  entry.loaded_at = now;
  entry.last_use = std::max(entry.last_use, now);
  loaded_[name] = &entry;
}

void EvictionPolicy::NoteUnloaded(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || !found->second.is_loaded) return;
  found->second.is_loaded = false;
  found->second.is_pinned_now = false;
  found->second.parts.clear();
  TakeFrom(used_, found->second.bytes);
  loaded_.erase(name);
}

void EvictionPolicy::Distrust(const std::string& name) {
  const auto found = entries_.find(name);
  if (found != entries_.end() && !found->second.is_loaded) found->second.is_distrusted = true;
}

void EvictionPolicy::PinWhileLoaded(const std::string& name, bool is_pinned) {
  if (const auto found = loaded_.find(name); found != loaded_.end()) {
    found->second->is_pinned_now = is_pinned;
  }
}

void EvictionPolicy::RetainOnly(const std::set<std::string>& names) {
  std::erase_if(entries_, [&](const auto& entry) {
    return !entry.second.is_loaded && !entry.second.is_pinned && !names.contains(entry.first);
  });
}

MemoryBytes EvictionPolicy::Missing(const MemoryBytes& needed, const MemoryBytes& present) const {
  MemoryBytes missing(used_.size());
  for (size_t i = 0; i < missing.size(); ++i) {
    const uint64_t budget = options_.budgets[i];
    const uint64_t total = present[i] + needed[i];
    if (budget > 0 && total > budget) missing[i] = total - budget;
  }
  return missing;
}

double EvictionPolicy::Worth(const Entry& entry, base::TimePoint now) const {
  double share = kMinShare;
  for (size_t i = 0; i < entry.bytes.size(); ++i) {
    if (options_.budgets[i] == 0) continue;
    share = std::max(
        share, static_cast<double>(entry.bytes[i]) / static_cast<double>(options_.budgets[i]));
  }
  const double half_lives = Seconds(now - entry.uses_at) / Seconds(options_.half_life);
  const auto cost = std::max<std::chrono::nanoseconds>(entry.duration, kShortestLoad);
  return entry.uses * std::exp2(-half_lives) * Seconds(cost).count() / share;
}

bool EvictionPolicy::MayGo(const std::string& name, const Entry& entry,
                           const std::set<std::string>& busy, base::TimePoint now) const {
  return entry.is_loaded && !Stays(entry) && now - entry.loaded_at >= options_.min_stay &&
         !busy.contains(name);
}

std::set<std::string> EvictionPolicy::Held() const {
  std::set<std::string> held;
  for (const auto& [name, entry] : loaded_) held.insert(entry->parts.begin(), entry->parts.end());
  return held;
}

bool EvictionPolicy::IsHeld(const std::string& name) const {
  return std::ranges::any_of(
      loaded_, [&](const LoadedEntry& loaded) { return loaded.second->parts.contains(name); });
}

std::optional<std::vector<std::string>> EvictionPolicy::HoldersOf(const std::string& name,
                                                                  const std::set<std::string>& busy,
                                                                  base::TimePoint now) const {
  std::vector<std::string> holders;
  for (const auto& [holder, entry] : loaded_) {
    if (!entry->parts.contains(name)) continue;
    if (!MayGo(holder, *entry, busy, now)) return std::nullopt;
    holders.push_back(holder);
  }
  // An ensemble has the parts of its inner ones, too.
  std::ranges::sort(holders, [this](const std::string& a, const std::string& b) {
    const size_t a_parts = loaded_.at(a)->parts.size();
    const size_t b_parts = loaded_.at(b)->parts.size();
    return a_parts != b_parts ? a_parts > b_parts : a < b;
  });
  return holders;
}

std::vector<const EvictionPolicy::LoadedEntry*> EvictionPolicy::Candidates(
    const std::string& name, const std::set<std::string>& busy, base::TimePoint now) const {
  std::vector<std::pair<double, const LoadedEntry*>> ranked;
  for (const LoadedEntry& loaded : loaded_) {
    if (loaded.first == name || !MayGo(loaded.first, *loaded.second, busy, now)) continue;
    ranked.emplace_back(Worth(*loaded.second, now), &loaded);
  }
  // Among models of the same worth, the one goes that has not been used for longest.
  std::ranges::sort(ranked, [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second->second->last_use) <
           std::pair(b.first, b.second->second->last_use);
  });
  std::vector<const LoadedEntry*> candidates;
  for (const auto& [worth, loaded] : ranked) candidates.push_back(loaded);
  return candidates;
}

MemoryBytes EvictionPolicy::Choose(const std::string& name, MemoryBytes missing,
                                   const std::set<std::string>& busy, base::TimePoint now,
                                   RoomPlan& plan) const {
  std::set<std::string> chosen = {name};
  const auto choose = [&](const std::string& victim) {
    if (chosen.insert(victim).second) plan.victims.push_back(victim);
  };
  const std::set<std::string> all_held = Held();
  std::vector<const LoadedEntry*> held;
  for (const LoadedEntry* const candidate : Candidates(name, busy, now)) {
    if (IsNothing(missing)) return missing;
    if (all_held.contains(candidate->first)) {
      held.push_back(candidate);
      continue;
    }
    MemoryBytes left = missing;
    TakeFrom(left, candidate->second->bytes);
    if (left == missing) continue;  // would make no room where it is needed
    missing = std::move(left);
    choose(candidate->first);
  }
  // Only if that does not suffice, ensembles go for what they need.
  for (const LoadedEntry* const candidate : held) {
    if (IsNothing(missing)) return missing;
    if (chosen.contains(candidate->first)) continue;  // an ensemble, for what it needs
    const auto holders = HoldersOf(candidate->first, busy, now);
    if (!holders || std::ranges::find(*holders, name) != holders->end()) continue;
    MemoryBytes left = missing;
    TakeFrom(left, candidate->second->bytes);
    if (left == missing) continue;
    for (const std::string& holder : *holders) {
      // One that is itself held has its own holders among these.
      if (!chosen.contains(holder)) TakeFrom(left, loaded_.at(holder)->bytes);
      choose(holder);
    }
    missing = std::move(left);
    choose(candidate->first);
  }
  return missing;
}

void EvictionPolicy::Spare(const MemoryBytes& missing, RoomPlan& plan) const {
  for (size_t i = plan.victims.size(); i-- > 0;) {
    const std::set<std::string>& parts = entries_.at(plan.victims[i]).parts;
    const bool is_holder = std::ranges::any_of(
        plan.victims, [&](const std::string& victim) { return parts.contains(victim); });
    if (is_holder) continue;
    MemoryBytes left = missing;
    for (size_t j = 0; j < plan.victims.size(); ++j) {
      if (j != i) TakeFrom(left, entries_.at(plan.victims[j]).bytes);
    }
    if (IsNothing(left)) plan.victims.erase(plan.victims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void EvictionPolicy::NoteParts(const std::string& name, const std::set<std::string>& parts) {
  if (const auto found = loaded_.find(name); found != loaded_.end()) found->second->parts = parts;
}

RoomPlan EvictionPolicy::MakeRoom(const std::string& name, const std::set<std::string>& busy,
                                  base::TimePoint now) const {
  RoomPlan plan;
  const auto known = entries_.find(name);
  const bool is_loaded = known != entries_.end() && known->second.is_loaded;
  const MemoryBytes own = KnownBytes(name).value_or(MemoryBytes(used_.size()));
  MemoryBytes others = used_;
  if (is_loaded) TakeFrom(others, own);
  const MemoryBytes missing = Missing(own, others);
  if (IsNothing(missing)) return plan;
  plan.lacking = FirstOf(missing);
  MemoryBytes fixed(used_.size());
  base::TimePoint oldest;
  for (const auto& [other, entry] : loaded_) {
    if (other == name) continue;
    for (size_t i = 0; Stays(*entry) && i < fixed.size(); ++i) fixed[i] += entry->bytes[i];
    if (Stays(*entry) || busy.contains(other)) continue;
    oldest = std::max(oldest, entry->loaded_at + options_.min_stay);
  }
  if (const MemoryBytes never = Missing(own, fixed); !IsNothing(never)) {
    return {.outcome = RoomPlan::Outcome::kNever, .lacking = FirstOf(never)};
  }
  if (const MemoryBytes left = Choose(name, missing, busy, now, plan); !IsNothing(left)) {
    return {.outcome = RoomPlan::Outcome::kNotNow,
            .lacking = FirstOf(left),
            .next_chance = oldest > now ? oldest : base::TimePoint()};
  }
  Spare(missing, plan);
  return plan;
}

std::vector<std::string> EvictionPolicy::FindExcess(const std::string& newest,
                                                    const std::set<std::string>& busy,
                                                    base::TimePoint now) const {
  RoomPlan plan;
  MemoryBytes missing = Missing(used_, MemoryBytes(used_.size()));
  TakeFrom(missing, Choose(newest, missing, busy, now, plan));
  Spare(missing, plan);
  return plan.victims;
}

std::vector<std::string> EvictionPolicy::FindIdle(const std::set<std::string>& busy,
                                                  base::TimePoint now) const {
  std::vector<std::string> idle;
  if (options_.idle_limit.count() == 0) return idle;
  const std::set<std::string> held = Held();
  for (const auto& [name, entry] : loaded_) {
    if (MayGo(name, *entry, busy, now) && !held.contains(name) &&
        now - entry->last_use >= options_.idle_limit) {
      idle.push_back(name);
    }
  }
  return idle;
}

bool EvictionPolicy::IsLoaded(const std::string& name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.is_loaded;
}

bool EvictionPolicy::IsPinned(const std::string& name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && Stays(found->second);
}

std::vector<std::string> EvictionPolicy::Loaded() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : loaded_) names.push_back(name);
  return names;
}

std::optional<MemoryBytes> EvictionPolicy::KnownBytes(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  const Entry& entry = found->second;
  return entry.has_bytes || entry.is_loaded ? std::optional(entry.bytes) : std::nullopt;
}

std::chrono::nanoseconds EvictionPolicy::KnownDuration(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? std::chrono::nanoseconds(0) : found->second.duration;
}

}  // namespace nereid::engine
