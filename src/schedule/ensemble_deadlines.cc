// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_deadlines.h"

#include <vector>

#include "base/clock.h"

namespace nereid::schedule {

void EnsembleDeadlines::Add(Entry& entry, uint64_t deadline_ns) {
  base::MutexLock lock(mutex_);
  if (entry.deadline_ns_ != 0) return;
  entry.deadline_ns_ = deadline_ns;
  entries_.emplace(deadline_ns, &entry);
  timer_.ArmAt(entries_.begin()->first);
}

// The timer is not set to a later time: it fires once in vain.
void EnsembleDeadlines::Remove(Entry& entry) {
  base::MutexLock lock(mutex_);
  if (const uint64_t deadline_ns = std::exchange(entry.deadline_ns_, 0); deadline_ns != 0) {
    entries_.erase({deadline_ns, &entry});
  }
}

void EnsembleDeadlines::OnTimer() {
  std::vector<Entry*> expired;
  {
    base::MutexLock lock(mutex_);
    const uint64_t now_ns = base::NowNs();
    while (!entries_.empty() && entries_.begin()->first <= now_ns) {
      Entry& entry = *entries_.extract(entries_.begin()).value().second;
      entry.deadline_ns_ = 0;
      entry.Reference();
      expired.push_back(&entry);
    }
    if (!entries_.empty()) timer_.ArmAt(entries_.begin()->first);
  }
  for (Entry* const entry : expired) {
    entry->Expire();
    entry->Unreference();  // the last one may destroy the ensemble, and with it this
  }
}

}  // namespace nereid::schedule
