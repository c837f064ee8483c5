// SPDX-License-Identifier: Apache-2.0
// Shares a model's queue among callers: each has a lane, and lanes take turns by their weights
// (start-time fair queueing). A caller's next request has a tag in virtual time; the lowest tag is
// next, and each execution moves its caller's tag on by the batch size over the weight. A caller
// that had nothing here joins at the current virtual time, so that it is next, or shares that place
// with others like it, however much another caller has waiting. Until the first caller is named,
// there is one lane, and nothing to divide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/caller.h"
#include "core/request.h"
#include "schedule/batch_policy.h"
#include "schedule/lane.h"

namespace nereid::schedule {

// Owns its requests. Confined to the lock of its scheduler.
class FairLanes {
 public:
  // Visits requests in the order of execution. Nothing may change meanwhile, and only one walk at a
  // time is possible.
  class Walk;

  // `policy` outlives the lanes.
  explicit FairLanes(const BatchPolicy& policy);
  FairLanes(const FairLanes&) = delete;
  FairLanes& operator=(const FairLanes&) = delete;

  size_t size() const { return size_; }
  void Push(core::RequestPtr request) {
    ++size_;
    if (is_shared_ || request->caller != nullptr) [[unlikely]]
      return PushShared(std::move(request));
    anonymous_.Push(std::move(request));
  }
  // Removes the request that is next for execution, at its caller's expense; null if there is none.
  core::RequestPtr PopFront() {
    if (size_ == 0) return nullptr;
    --size_;
    if (is_shared_) [[unlikely]]
      return PopShared();
    return anonymous_.Remove(*anonymous_.first());
  }
  // Removes `request`, which is in one of the lanes, at nobody's expense.
  core::RequestPtr Remove(core::Request& request) {
    --size_;
    if (is_shared_) [[unlikely]]
      return RemoveShared(request);
    return anonymous_.Remove(request);
  }
  // Puts `request`, which has not lost its turn before, behind all others of its lane's level.
  void Delay(core::Request& request) { LaneOf(request).Delay(request); }

  // Counts the requests of all lanes that have this priority.
  size_t CountAt(uint64_t priority) const;
  // Returns the time since when the oldest request waits; UINT64_MAX if there is none.
  uint64_t OldestNs() const;
  // Returns about how many requests would run before `request` if it were pushed now.
  size_t CountAhead(const core::Request& request) const;
  // Whether others wait, and the caller of `request` has fewer requests here than its share of
  // `total`.
  bool IsBelowShare(const core::Request& request, size_t total) const;
  // Returns the newest request, of the same level as `request`, of the caller who has the most of
  // them for its weight, if that is still the case when `request` is pushed; null otherwise.
  core::Request* FindSurplus(const core::Request& request) const;

 private:
  static bool IsBefore(const Lane& a, const Lane& b) {
    return a.tag != b.tag ? a.tag < b.tag : a.turn < b.turn;
  }
  // Returns null if the caller has none.
  const Lane* FindLane(const core::Caller* caller) const;
  Lane& LaneOf(const core::Request& request) {
    return const_cast<Lane&>(*FindLane(request.caller.get()));
  }
  Lane& MakeLane(const core::CallerRef& caller);
  void PushShared(core::RequestPtr request);
  core::RequestPtr PopShared();
  core::RequestPtr RemoveShared(core::Request& request);
  // The lanes with requests, in the order of their turns.
  std::span<Lane* const> active() const {
    if (is_shared_) return active_;
    return {&only_, anonymous_.size() == 0 ? 0u : 1u};
  }
  void Activate(Lane& lane);
  void Deactivate(Lane& lane);
  // Forgets callers who have nothing here and owe nothing.
  void Prune();

  const BatchPolicy& policy_;
  Lane anonymous_;
  Lane* const only_ = &anonymous_;
  bool is_shared_ = false;  // whether a caller was ever named; if not, what follows is not in use
  std::map<const core::Caller*, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> active_;
  uint64_t now_ = 0;          // virtual time: the tag of the last request that was popped
  uint64_t turns_ = 0;        // of lanes that became active
  uint64_t busy_period_ = 0;  // ends when nothing waits; tags of earlier ones mean nothing
  size_t size_ = 0;

  // A lane that a walk has visited.
  struct Visit {
    Lane::Cursor cursor;
    uint64_t tag = 0;
    const Lane* lane = nullptr;
  };
  std::vector<Visit> visited_;  // a heap; kept for its memory
};

class FairLanes::Walk {
 public:
  explicit Walk(FairLanes& lanes) : lanes_(lanes), active_(lanes.active()) {
    if (active_.size() > 1) [[unlikely]]
      lanes_.visited_.clear();
    if (!active_.empty()) Enter();
  }
  // Null at the end.
  core::Request* request() const { return here_.cursor.request(); }
  void Next() {
    if (active_.size() == 1) [[likely]]
      return here_.cursor.Next();
    NextOfMany();
  }

 private:
  void NextOfMany();
  static bool IsLater(const Visit& a, const Visit& b) {
    return a.tag != b.tag ? a.tag > b.tag : a.lane->turn > b.lane->turn;
  }
  // Enters the next lane that was not visited before.
  void Enter() {
    const Lane& lane = *active_[entered_++];
    here_ = {.cursor = Lane::Cursor(lane), .tag = lane.tag, .lane = &lane};
  }

  FairLanes& lanes_;
  const std::span<Lane* const> active_;
  size_t entered_ = 0;  // so many of them
  Visit here_;
};

}  // namespace nereid::schedule
