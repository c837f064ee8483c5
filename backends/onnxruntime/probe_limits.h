// SPDX-License-Identifier: Apache-2.0
// What the probe of a model may cost.
#pragma once

#include <chrono>
#include <cstdint>

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

}  // namespace nereid::onnxruntime
