// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/{dynamic_batch_scheduler,scheduler_utils}.cc of Triton.
#include "schedule/refuse.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "core/model.h"

namespace nereid::schedule {

base::Status StoppingError() {
  return base::UnavailableError(
      "Server is stopping, scheduler for model has stopped accepting new inference requests");
}

base::Status CancelledError() { return base::CancelledError("Request cancelled"); }

base::Status TimeoutError() { return base::UnavailableError("Request timeout expired"); }

base::Status QueueFullError() { return base::UnavailableError("Exceeds maximum queue size"); }

base::Status DeadlineError(const core::Model& model) {
  return base::DeadlineExceededError(fmt::format(
      "the deadline of the request passed before model '{}' could execute it", model.name()));
}

void Refuse(core::RequestPtr request, core::FailureReason reason, base::Status error) {
  request->model->statistics().RecordFailure(reason, request->times.request_start_ns,
                                             base::NowNs());
  core::CompleteWithPrefixedError(std::move(request), std::move(error));
}

void RefusePlainly(core::RequestPtr request, core::FailureReason reason, base::Status error) {
  request->model->statistics().RecordFailure(reason, request->times.request_start_ns,
                                             base::NowNs());
  core::CompleteWithError(std::move(request), std::move(error));
}

}  // namespace nereid::schedule
