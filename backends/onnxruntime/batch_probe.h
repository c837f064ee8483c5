// SPDX-License-Identifier: Apache-2.0
// Decides whether to batch a model whose configuration does not say so: by the description of its
// tensors, and by running the session that will serve it on generated rows
// (backend_kit/batch_probe.h).
#pragma once

#include "backend_kit/batch_probe.h"
#include "onnxruntime_backend/probe_limits.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// Returns the verdict for batches of up to `max_rows` rows, and frees the memory that the runs
// used. Never fails: any error is a reason not to batch.
backend::BatchVerdict DecideBatching(const Session& session, int max_rows,
                                     const ProbeLimits& limits = {});

}  // namespace nereid::onnxruntime
