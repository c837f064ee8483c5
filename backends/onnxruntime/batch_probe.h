// SPDX-License-Identifier: Apache-2.0
// Decides whether a model whose configuration does not say so may be batched: by what it says of
// its tensors, and by running the session that will serve it on generated rows
// (backend_kit/batch_probe.h).
#pragma once

#include <chrono>
#include <cstdint>

#include "backend_kit/batch_probe.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// What finding out may cost. Beyond any of these the model is not batched.
struct ProbeLimits {
  // Processor time of the thread that loads the model: a busy machine does not change the outcome.
  std::chrono::milliseconds cpu_time{3000};
  // The whole probe, by the clock; a run under way is stopped then.
  std::chrono::milliseconds wall_time{10000};
  // All outputs of one run together.
  uint64_t output_bytes = uint64_t{128} << 20;
  // What ONNX Runtime's arena holds for one run, where the library tells (from 1.23 on).
  uint64_t arena_bytes = uint64_t{1} << 30;
};

// The verdict for batches of up to `max_rows` rows. Memory that the runs took is given back. Never
// fails: whatever goes wrong is a reason not to batch.
backend::BatchVerdict DecideBatching(const Session& session, int max_rows,
                                     const ProbeLimits& limits = {});

}  // namespace nereid::onnxruntime
