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

// Answers with `error`, counts it for the model, and releases the request. Never under a lock: the
// answer may call back into anything.
void Refuse(core::RequestPtr request, core::FailureReason reason, base::Status error);

}  // namespace nereid::schedule
