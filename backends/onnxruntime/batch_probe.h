// SPDX-License-Identifier: Apache-2.0
// Decides whether to batch a model whose configuration does not say so: by the description of its
// tensors, and by running the session that will serve it on generated rows
// (backend_kit/batch_probe.h).
#pragma once

#include <chrono>
#include <cstdint>

#include "backend_kit/batch_probe.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// The limits of the probe. A model that exceeds any of them is not batched.
struct ProbeLimits {
  // Processor time of the thread that loads the model, so that the result does not depend on the
  // machine's load.
  std::chrono::milliseconds cpu_time{3000};
  // Elapsed time of the whole probe, after which the current run is stopped.
  std::chrono::milliseconds wall_time{10000};
  // The size of all outputs of one run.
  uint64_t output_bytes = uint64_t{128} << 20;
  // The size of ONNX Runtime's arena for one run, if the library reports it (from 1.23 on).
  uint64_t arena_bytes = uint64_t{1} << 30;
};

// Returns the verdict for batches of up to `max_rows` rows, and frees the memory that the runs
// used. Never fails: any error is a reason not to batch.
backend::BatchVerdict DecideBatching(const Session& session, int max_rows,
                                     const ProbeLimits& limits = {});

}  // namespace nereid::onnxruntime
