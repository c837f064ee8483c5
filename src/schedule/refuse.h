// SPDX-License-Identifier: Apache-2.0
// Errors of schedulers for requests that they do not run.
#pragma once

#include "base/status.h"
#include "core/request.h"
#include "core/statistics.h"

namespace nereid::schedule {

base::Status StoppingError();
base::Status CancelledError();
base::Status TimeoutError();
base::Status QueueFullError();
// For a request whose deadline has passed in the queue, or before it.
base::Status DeadlineError(const core::Model& model);

// Both respond with an error, count it for the model, and release the request. Never under a lock:
// the response may call back into anything. Refuse puts the request's id before the text;
// RefusePlainly sends only the text, as Triton does for timeouts and for every error of sequences,
// which clients compare.
void Refuse(core::RequestPtr request, core::FailureReason reason, base::Status error);
void RefusePlainly(core::RequestPtr request, core::FailureReason reason, base::Status error);

}  // namespace nereid::schedule
