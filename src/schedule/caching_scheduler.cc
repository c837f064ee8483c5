// SPDX-License-Identifier: Apache-2.0
#include "schedule/caching_scheduler.h"

namespace nereid::schedule {

void CachingScheduler::Enqueue(core::RequestPtr request) {
  // Once stopped, the scheduler behind this one refuses the request.
  if (!is_stopping_.load() && !request->is_cancelled()) {
    if (keeps_order_) order_.Join(*request);
    if (core::ResponsePtr known = caching_->Find(*request)) {
      return core::Complete(std::move(request), std::move(known));
    }
  }
  scheduler_->Enqueue(std::move(request));
}

bool CachingScheduler::Stop(base::TimePoint deadline) {
  is_stopping_.store(true);
  return scheduler_->Stop(deadline);
}

}  // namespace nereid::schedule
