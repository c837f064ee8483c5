// SPDX-License-Identifier: Apache-2.0
// The waiting requests of one caller, by priority level. FairLanes says whose turn it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "core/caller.h"
#include "core/request.h"
#include "schedule/batch_policy.h"
#include "schedule/request_list.h"

namespace nereid::schedule {

// Owns its requests. Confined to the lock of its scheduler.
class Lane {
 public:
  class Cursor;

  // `policy` outlives the lane. Without a caller, the lane is of everybody who was not asked.
  Lane(const BatchPolicy& policy, core::CallerRef caller);

  size_t size() const { return size_; }
  uint32_t weight() const { return weight_; }
  size_t CountAt(uint64_t priority) const;
  // Counts the requests that run before one of that priority that is pushed now.
  size_t CountUpTo(uint64_t priority) const;
  // Returns the newest request of a level; null if there is none.
  core::Request* NewestAt(uint64_t priority) const;

  // Returns the request that is next for execution; null if there is none.
  core::Request* first() const;
  // Returns the time since when the oldest request waits; UINT64_MAX if there is none.
  uint64_t OldestNs() const;

  void Push(core::RequestPtr request) {
    ++size_;
    Level& level = LevelOf(*request);
    level.waiting.PushBack(std::move(request));
  }
  // Removes `request`, which is in this lane.
  core::RequestPtr Remove(core::Request& request) {
    --size_;
    core::RequestPtr removed = RequestList::Of(request)->Unlink(request);
    if (has_levels_) [[unlikely]]
      ForgetEmptyLevel(*removed);
    return removed;
  }
  // Puts `request`, which has not lost its turn before, behind all others of its level.
  void Delay(core::Request& request);

  // Returns how much virtual time an execution of `request` takes from its caller.
  uint64_t CostOf(const core::Request& request) const { return item_cost_ * request.batch_count(); }

  // -- For FairLanes. -- In which order lanes have their turns: by virtual time, and at the same
  // time, by which has waited longer.
  uint64_t tag = 0;
  uint64_t turn = 0;
  uint64_t busy_period = 0;  // of the queue, to which `tag` belongs

 private:
  // The requests of one priority. Those that lost their turn (DELAY) follow the others.
  struct Level {
    RequestList waiting;
    RequestList delayed;
    size_t size() const { return waiting.size() + delayed.size(); }
    uint64_t OldestNs() const;
  };
  using Levels = std::map<uint64_t, Level>;

  Level& LevelOf(const core::Request& request) {
    return has_levels_ ? levels_[policy_.PriorityOf(request)] : plain_;
  }
  // Returns null if the level has no requests.
  const Level* FindLevel(uint64_t priority) const;
  void ForgetEmptyLevel(const core::Request& removed);

  const BatchPolicy& policy_;
  const bool has_levels_;
  const core::CallerRef caller_;  // keeps its address, by which the lane is found
  const uint32_t weight_;
  const uint64_t item_cost_;
  Level plain_;  // without levels, all requests are in this one
  Levels
      levels_;  // in the order of execution; there may be 2^64, so only those with requests exist
  size_t size_ = 0;
};

// Visits the requests of a lane in the order of execution: highest priority first; within a level,
// requests in time before those that lost their turn.
class Lane::Cursor {
 public:
  Cursor() = default;
  explicit Cursor(const Lane& lane)
      : level_(&lane.plain_),
        next_(lane.levels_.begin()),
        end_(lane.levels_.end()),
        request_(level_->waiting.front()) {
    if (request_ == nullptr) Continue();
  }
  // Null at the end.
  core::Request* request() const { return request_; }
  void Next() {
    request_ = request_->next;
    if (request_ == nullptr) Continue();
  }

 private:
  void Continue();

  const Level* level_ = nullptr;
  Levels::const_iterator next_;  // the level behind that
  Levels::const_iterator end_;
  core::Request* request_ = nullptr;
  bool is_delayed_ = false;
};

inline core::Request* Lane::first() const {
  core::Request* const plain = plain_.waiting.front();
  return plain != nullptr ? plain : Cursor(*this).request();
}

}  // namespace nereid::schedule
