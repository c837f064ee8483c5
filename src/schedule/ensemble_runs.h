// SPDX-License-Identifier: Apache-2.0
// The requests of one ensemble that are in progress: found by their request when that is cancelled,
// and waited for when the ensemble is unloaded.
#pragma once

#include <atomic>
#include <memory>

#include "base/linked_list.h"
#include "base/mutex.h"
#include "core/request.h"

namespace nereid::schedule {

// Thread-safe.
class EnsembleRuns {
 public:
  // An object that is registered here.
  class Entry {
   public:
    virtual ~Entry() = default;
    // Reference and Unreference keep the entry while another thread, which found it here, cancels
    // it.
    virtual void Reference() = 0;
    virtual void Unreference() = 0;
    virtual void Cancel() = 0;

   private:
    friend class EnsembleRuns;

    // Guarded by the bucket.
    const core::Request* request_ = nullptr;
    base::ListLinks<Entry> links_;
  };

  // Adds an entry, which is found by `request`.
  void Add(Entry& entry, const core::Request& request);
  // REQUIRES: it was added.
  void Remove(Entry& entry);
  // Cancels the entry of `request`, if it is still here.
  void Cancel(const core::Request& request);
  // Waits until there is none. Returns false at `deadline`.
  bool WaitUntilEmpty(base::TimePoint deadline);

 private:
  static constexpr size_t kBuckets = 64;
  // Entries whose requests' addresses have the same hash, with their own lock.
  struct alignas(64) Bucket {
    base::Mutex mutex;
    base::LinkedList<Entry, &Entry::links_> entries NEREID_GUARDED_BY(mutex);
  };

  Bucket& BucketOf(const core::Request& request);
  // Returns an entry with a reference for the caller; null if it is not here.
  Entry* Find(const core::Request& request);
  bool IsEmpty();

  std::unique_ptr<Bucket[]> buckets_{new Bucket[kBuckets]};
  // Set before the waiting thread looks into the buckets, read after an entry has left its bucket:
  // either that thread finds the bucket without the entry, or Remove sees that it has to notify.
  std::atomic<bool> is_awaited_{false};
  base::Mutex mutex_;
  base::CondVar changed_;
};

}  // namespace nereid::schedule
