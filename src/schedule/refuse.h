// SPDX-License-Identifier: Apache-2.0
// Answers of schedulers to requests that they do not run.
#pragma once

#include "base/status.h"
#include "core/request.h"
#include "core/statistics.h"

namespace nereid::schedule {

base::Status StoppingError();
base::Status CancelledError();
base::Status TimeoutError();
base::Status QueueFullError();

// Both answer with an error, count it for the model, and release the request. Never under a lock:
// the answer may call back into anything. Refuse names the request before the text; RefusePlainly
// gives the text alone, as Triton does for timeouts and for every error of sequences, and clients
// compare.
void Refuse(core::RequestPtr request, core::FailureReason reason, base::Status error);
void RefusePlainly(core::RequestPtr request, core::FailureReason reason, base::Status error);

}  // namespace nereid::schedule
