// SPDX-License-Identifier: Apache-2.0
#include "schedule/fair_lanes.h"

#include <algorithm>
#include <utility>

namespace nereid::schedule {
namespace {

// So many lanes without requests are kept, because their callers probably come back.
constexpr size_t kKeptLanes = 64;

}  // namespace

FairLanes::FairLanes(const BatchPolicy& policy) : policy_(policy), anonymous_(policy, nullptr) {}

const Lane* FairLanes::FindLane(const core::Caller* caller) const {
  if (caller == nullptr) return &anonymous_;
  const auto found = lanes_.find(caller);
  return found == lanes_.end() ? nullptr : found->second.get();
}

Lane& FairLanes::MakeLane(const core::CallerRef& caller) {
  if (caller == nullptr) return anonymous_;
  if (lanes_.size() >= 2 * active_.size() + kKeptLanes) Prune();
  std::unique_ptr<Lane>& lane = lanes_[caller.get()];
  if (lane == nullptr) lane = std::make_unique<Lane>(policy_, caller);
  return *lane;
}

void FairLanes::Prune() {
  std::erase_if(lanes_, [this](const auto& entry) {
    const Lane& lane = *entry.second;
    return lane.size() == 0 && (lane.busy_period != busy_period_ || lane.tag <= now_);
  });
}

void FairLanes::Activate(Lane& lane) {
  if (lane.busy_period != busy_period_) lane.tag = 0;
  lane.busy_period = busy_period_;
  lane.tag = std::max(lane.tag, now_);
  lane.turn = ++turns_;
  if (active_.empty()) return active_.push_back(&lane);
  const auto behind = [](const Lane* a, const Lane* b) { return IsBefore(*a, *b); };
  active_.insert(std::ranges::upper_bound(active_, &lane, behind), &lane);
}

void FairLanes::Deactivate(Lane& lane) {
  std::erase(active_, &lane);
  if (!active_.empty()) return;
  ++busy_period_;
  now_ = 0;
}

void FairLanes::PushShared(core::RequestPtr request) {
  if (!std::exchange(is_shared_, true) && anonymous_.size() > 0) Activate(anonymous_);
  const Lane* const found = FindLane(request->caller.get());
  Lane& lane = found != nullptr ? const_cast<Lane&>(*found) : MakeLane(request->caller);
  lane.Push(std::move(request));
  if (lane.size() == 1) Activate(lane);
}

core::RequestPtr FairLanes::PopShared() {
  Lane& lane = *active_.front();
  core::Request& first = *lane.first();
  now_ = lane.tag;
  lane.tag += lane.CostOf(first);
  core::RequestPtr popped = lane.Remove(first);
  if (lane.size() == 0) {
    Deactivate(lane);
    return popped;
  }
  // Moves it to its place among the others.
  for (size_t i = 1; i < active_.size() && IsBefore(*active_[i], lane); ++i) {
    std::swap(active_[i - 1], active_[i]);
  }
  return popped;
}

core::RequestPtr FairLanes::RemoveShared(core::Request& request) {
  Lane& lane = LaneOf(request);
  core::RequestPtr removed = lane.Remove(request);
  if (lane.size() == 0) Deactivate(lane);
  return removed;
}

size_t FairLanes::CountAt(uint64_t priority) const {
  size_t count = 0;
  for (const Lane* lane : active()) count += lane->CountAt(priority);
  return count;
}

uint64_t FairLanes::OldestNs() const {
  uint64_t oldest_ns = UINT64_MAX;
  for (const Lane* lane : active()) oldest_ns = std::min(oldest_ns, lane->OldestNs());
  return oldest_ns;
}

size_t FairLanes::CountAhead(const core::Request& request) const {
  const Lane* const own = FindLane(request.caller.get());
  const size_t before = own == nullptr ? 0 : own->CountUpTo(policy_.PriorityOf(request));
  const size_t weight =
      request.caller == nullptr ? 1 : std::max<size_t>(request.caller->limits.weight, 1);
  size_t count = before;
  for (const Lane* lane : active()) {
    if (lane == own) continue;
    // So many turns have the others until this request has its own.
    count += std::min(lane->size(), ((before + 1) * lane->weight() + weight - 1) / weight);
  }
  return count;
}

bool FairLanes::IsBelowShare(const core::Request& request, size_t total) const {
  const Lane* const own = FindLane(request.caller.get());
  const size_t weight =
      request.caller == nullptr ? 1 : std::max<size_t>(request.caller->limits.weight, 1);
  size_t weights = weight;
  for (const Lane* lane : active()) {
    if (lane != own) weights += lane->weight();
  }
  if (weights == weight) return false;
  return (own == nullptr ? 0 : own->size()) * weights < total * weight;
}

core::Request* FairLanes::FindSurplus(const core::Request& request) const {
  const uint64_t priority = policy_.PriorityOf(request);
  const Lane* const own = FindLane(request.caller.get());
  const Lane* most = nullptr;
  for (const Lane* lane : active()) {
    if (lane == own) continue;
    if (most == nullptr ||
        lane->CountAt(priority) * most->weight() > most->CountAt(priority) * lane->weight()) {
      most = lane;
    }
  }
  if (most == nullptr) return nullptr;
  const size_t weight =
      request.caller == nullptr ? 1 : std::max<size_t>(request.caller->limits.weight, 1);
  const size_t count = 1 + (own == nullptr ? 0 : own->CountAt(priority));
  if (most->CountAt(priority) * weight <= count * most->weight()) return nullptr;
  return most->NewestAt(priority);
}

void FairLanes::Walk::NextOfMany() {
  std::vector<Visit>& visited = lanes_.visited_;
  here_.tag += here_.lane->CostOf(*here_.cursor.request());
  here_.cursor.Next();
  if (here_.cursor.request() != nullptr) {
    visited.push_back(here_);
    std::ranges::push_heap(visited, IsLater);
  }
  // The lane that was never visited comes before those that were, unless its tag is higher.
  if (entered_ < active_.size()) {
    const Lane& fresh = *active_[entered_];
    if (visited.empty() ||
        IsLater(visited.front(), {.cursor = {}, .tag = fresh.tag, .lane = &fresh})) {
      return Enter();
    }
  }
  if (visited.empty()) return;
  std::ranges::pop_heap(visited, IsLater);
  here_ = visited.back();
  visited.pop_back();
}

}  // namespace nereid::schedule
