// SPDX-License-Identifier: Apache-2.0
// The scheduler of an ensemble: it has no instances but sends requests of its own to the models
// that its steps name, and answers from what they answer. See EnsembleRun for how, and EnsemblePlan
// for what it knows beforehand.
#pragma once

#include <atomic>
#include <memory>

#include "core/model.h"
#include "core/scheduler.h"
#include "core/submitter.h"
#include "schedule/ensemble_plan.h"
#include "schedule/ensemble_run.h"

namespace nereid::schedule {

// Thread-safe.
class EnsembleScheduler final : public core::Scheduler {
 public:
  // `model` is the ensemble, `plan` the one of its configuration. Both others outlive the
  // scheduler.
  EnsembleScheduler(core::Model& model, EnsemblePlan plan, core::Submitter& submitter);

  void Enqueue(core::RequestPtr request) override;
  void OnCancelled(core::Request& request) override;
  bool Stop(base::TimePoint deadline) override;

 private:
  EnsembleRuns runs_;
  EnsembleShared shared_;
  std::atomic<bool> is_stopping_{false};
};

}  // namespace nereid::schedule
