// SPDX-License-Identifier: Apache-2.0
// Puts the response cache in front of another scheduler: known requests are completed at once and
// never reach it. A cache that may wait is asked on threads of its own, never on the thread that
// brings the request: a reactor would hold up everything else.
#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "core/scheduler.h"
#include "schedule/ordered_responses.h"
#include "schedule/response_caching.h"

namespace nereid::schedule {

// Thread-safe.
class CachingScheduler final : public core::Scheduler {
 public:
  // With `keeps_order`, responses are sent in the order of the requests, from the cache or not.
  CachingScheduler(std::unique_ptr<core::Scheduler> scheduler,
                   std::unique_ptr<ResponseCaching> caching, bool keeps_order)
      : caching_(std::move(caching)), keeps_order_(keeps_order), scheduler_(std::move(scheduler)) {}

  void Enqueue(core::RequestPtr request) override;
  void OnCancelled(core::Request& request) override { scheduler_->OnCancelled(request); }
  bool Reschedule(core::RequestPtr& request) override { return scheduler_->Reschedule(request); }
  void RefuseStarts() override { scheduler_->RefuseStarts(); }
  bool WaitForSequences(base::TimePoint deadline) override {
    return scheduler_->WaitForSequences(deadline);
  }
  size_t SequenceCount() override { return scheduler_->SequenceCount(); }
  bool HasSequence(const core::CorrelationId& id) override { return scheduler_->HasSequence(id); }
  core::SchedulerLoad ReadLoad() override { return scheduler_->ReadLoad(); }
  std::optional<core::SequencesReading> ReadSequences(size_t most) override {
    return scheduler_->ReadSequences(most);
  }
  bool Stop(base::TimePoint deadline) override;

 private:
  // Completes the request with what the cache knows, or passes it on if that is null.
  void CompleteOrSchedule(core::RequestPtr request, core::ResponsePtr known);
  // Counts a look-up on the cache's threads; returns false if this is stopped.
  bool BeginLookup();
  void EndLookup();

  const std::unique_ptr<ResponseCaching> caching_;
  const bool keeps_order_;
  std::atomic<bool> is_stopping_{false};
  base::Mutex mutex_;
  base::CondVar looked_up_;
  size_t lookups_ NEREID_GUARDED_BY(mutex_) = 0;  // on the cache's threads
  OrderedResponses order_;
  const std::unique_ptr<core::Scheduler>
      scheduler_;  // destroyed first: its requests may be in line
};

}  // namespace nereid::schedule
