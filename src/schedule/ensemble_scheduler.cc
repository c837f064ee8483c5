// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_scheduler.h"

#include "base/log.h"

namespace nereid::schedule {

EnsembleScheduler::EnsembleScheduler(core::Model& model, EnsemblePlan plan,
                                     core::Submitter& submitter, ProducerWaits& producer_waits,
                                     base::Timers& timers)
    : shared_{.model = model,
              .submitter = submitter,
              .producer_waits = producer_waits,
              .plan = std::move(plan),
              .limiters = {},
              .deadlines = nullptr,
              .runs = &runs_} {
  const uint32_t limit = shared_.plan.max_inflight_requests();
  if (limit == 0) return;
  NEREID_LOG(kInfo, "Ensemble model '{}' configured with max_inflight_requests: {}", model.name(),
             limit);
  shared_.deadlines = &deadlines_.emplace(timers);
  for (size_t i = 0; i < shared_.plan.steps().size(); ++i) {
    shared_.limiters.push_back(std::make_unique<StepLimiter>(limit, timers));
  }
}

void EnsembleScheduler::Enqueue(core::RequestPtr request) {
  request->MarkQueued();
  if (is_stopping_) [[unlikely]] {
    shared_.model.statistics().RecordFailure(core::FailureReason::kOther,
                                             request->times.request_start_ns, base::NowNs());
    return core::CompleteWithPrefixedError(
        std::move(request),
        base::UnavailableError("Server is stopping, scheduler for model has stopped accepting new "
                               "inference requests"));
  }
  EnsembleRun::Start(shared_, std::move(request));
}

void EnsembleScheduler::OnCancelled(core::Request& request) { runs_.Cancel(request); }

bool EnsembleScheduler::Stop(base::TimePoint deadline) {
  is_stopping_ = true;
  return runs_.WaitUntilEmpty(deadline);
}

}  // namespace nereid::schedule
