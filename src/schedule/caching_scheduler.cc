// SPDX-License-Identifier: Apache-2.0
#include "schedule/caching_scheduler.h"

#include <utility>

#include "base/no_wait.h"

namespace nereid::schedule {

void CachingScheduler::Enqueue(core::RequestPtr request) {
  // Once stopped, the scheduler behind this one refuses the request.
  if (is_stopping_.load() || request->is_cancelled()) {
    return scheduler_->Enqueue(std::move(request));
  }
  base::TaskPool* const threads = caching_->threads();
  if (threads == nullptr) {
    if (keeps_order_) order_.Join(*request);
    core::ResponsePtr known = caching_->Find(*request);
    return CompleteOrSchedule(std::move(request), std::move(known));
  }
  if (!BeginLookup()) return scheduler_->Enqueue(std::move(request));
  if (keeps_order_) order_.Join(*request);
  request->round = nullptr;  // its reactor does not wait for the look-up
  // Keeps this until the end of the task, which may be later than the request's.
  core::ModelHandle pin = request->model.Duplicate();
  threads->Post([this, pin = std::move(pin), request = std::move(request)]() mutable {
    core::ResponsePtr known = request->is_cancelled() ? nullptr : caching_->Find(*request);
    // The request's time in the queue begins now: the look-up may have waited for another process.
    if (known == nullptr) request->times.queue_start_ns = 0;
    {
      // A client that reads slowly must not keep a thread that others need.
      const base::NoWaitScope no_wait;
      CompleteOrSchedule(std::move(request), std::move(known));
    }
    EndLookup();
  });
}

void CachingScheduler::CompleteOrSchedule(core::RequestPtr request, core::ResponsePtr known) {
  if (known != nullptr) return core::Complete(std::move(request), std::move(known));
  scheduler_->Enqueue(std::move(request));
}

bool CachingScheduler::BeginLookup() {
  const base::MutexLock lock(mutex_);
  if (is_stopping_.load()) return false;
  ++lookups_;
  return true;
}

void CachingScheduler::EndLookup() {
  const base::MutexLock lock(mutex_);
  if (--lookups_ == 0) looked_up_.NotifyAll();
}

bool CachingScheduler::Stop(base::TimePoint deadline) {
  {
    base::MutexLock lock(mutex_);
    is_stopping_.store(true);
    while (lookups_ > 0) {
      if (!looked_up_.WaitUntil(mutex_, deadline) && lookups_ > 0) return false;
    }
  }
  return scheduler_->Stop(deadline);
}

}  // namespace nereid::schedule
