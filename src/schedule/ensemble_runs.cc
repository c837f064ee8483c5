// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_runs.h"

#include <cstdint>

namespace nereid::schedule {

EnsembleRuns::Bucket& EnsembleRuns::BucketOf(const core::Request& request) {
  static_assert(kBuckets == 64, "six bits of the hash");
  const auto address = reinterpret_cast<uintptr_t>(&request);
  // The low bits are the same for all requests; multiplication spreads the others.
  return buckets_[(address * UINT64_C(0x9E3779B97F4A7C15)) >> 58];
}

void EnsembleRuns::Add(Entry& entry, const core::Request& request) {
  Bucket& bucket = BucketOf(request);
  base::MutexLock lock(bucket.mutex);
  entry.request_ = &request;
  bucket.entries.PushFront(entry);
}

void EnsembleRuns::Remove(Entry& entry) {
  {
    Bucket& bucket = BucketOf(*entry.request_);
    base::MutexLock lock(bucket.mutex);
    bucket.entries.Remove(entry);
  }
  if (!is_awaited_) return;
  base::MutexLock lock(mutex_);
  changed_.NotifyAll();
}

EnsembleRuns::Entry* EnsembleRuns::Find(const core::Request& request) {
  Bucket& bucket = BucketOf(request);
  base::MutexLock lock(bucket.mutex);
  for (Entry* entry = bucket.entries.head(); entry != nullptr; entry = entry->links_.next) {
    if (entry->request_ != &request) continue;
    entry->Reference();
    return entry;
  }
  return nullptr;
}

void EnsembleRuns::Cancel(const core::Request& request) {
  Entry* const entry = Find(request);
  if (entry == nullptr) return;
  entry->Cancel();
  entry->Unreference();
}

bool EnsembleRuns::IsEmpty() {
  for (size_t i = 0; i < kBuckets; ++i) {
    base::MutexLock lock(buckets_[i].mutex);
    if (!buckets_[i].entries.empty()) return false;
  }
  return true;
}

bool EnsembleRuns::WaitUntilEmpty(base::TimePoint deadline) {
  is_awaited_ = true;
  base::MutexLock lock(mutex_);
  while (!IsEmpty()) {
    if (!changed_.WaitUntil(mutex_, deadline)) return IsEmpty();
  }
  return true;
}

}  // namespace nereid::schedule
