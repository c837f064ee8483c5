// SPDX-License-Identifier: Apache-2.0
// The clock of requests that wait for a place of an ensemble's step (max_inflight_requests). No
// model has them in its queue meanwhile, so nothing else notices that their deadline passes.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/timers.h"

namespace nereid::schedule {

// Belongs to one ensemble. Thread-safe.
class EnsembleDeadlines {
 public:
  // A request that is registered here.
  class Entry {
   public:
    virtual ~Entry() = default;
    // Reference and Unreference keep the entry while the timers' thread calls Expire.
    virtual void Reference() = 0;
    virtual void Unreference() = 0;
    // The deadline has passed. The entry is not registered any more.
    virtual void Expire() = 0;

   private:
    friend class EnsembleDeadlines;

    uint64_t deadline_ns_ = 0;  // 0: not registered; guarded by the lock
  };

  // `timers` outlives this.
  explicit EnsembleDeadlines(base::Timers& timers) : timer_(timers, [this] { OnTimer(); }) {}

  // Registers `entry`, unless it is registered.
  void Add(Entry& entry, uint64_t deadline_ns);
  // REQUIRES: Add is not called for it any more. Expire is not called from then on, unless that is
  // under way.
  void Remove(Entry& entry);

 private:
  void OnTimer();

  base::Mutex mutex_;
  std::set<std::pair<uint64_t, Entry*>> entries_ NEREID_GUARDED_BY(mutex_);
  base::Timer timer_;
};

}  // namespace nereid::schedule
