// SPDX-License-Identifier: Apache-2.0
// The scheduler of an ensemble: it has no instances but sends its own requests to the models of its
// steps, and makes the response from theirs. EnsembleRun executes a request, and EnsemblePlan has
// what is known at load.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/timers.h"
#include "core/model.h"
#include "core/scheduler.h"
#include "core/submitter.h"
#include "schedule/ensemble_plan.h"
#include "schedule/ensemble_run.h"

namespace nereid::schedule {

// Thread-safe.
class EnsembleScheduler final : public core::Scheduler {
 public:
  // `model` is the ensemble, `plan` that of its configuration, and `producer_waits` that of all
  // ensembles. All but the plan outlive the scheduler.
  EnsembleScheduler(core::Model& model, EnsemblePlan plan, core::Submitter& submitter,
                    ProducerWaits& producer_waits, base::Timers& timers);

  void Enqueue(core::RequestPtr request) override;
  void OnCancelled(core::Request& request) override;
  bool Stop(base::TimePoint deadline) override;

 private:
  EnsembleRuns runs_;
  std::optional<EnsembleDeadlines> deadlines_;  // if the ensemble has limits
  EnsembleShared shared_;
  std::atomic<bool> is_stopping_{false};
};

}  // namespace nereid::schedule
