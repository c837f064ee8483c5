// SPDX-License-Identifier: Apache-2.0
// The statistics of models as a server counts them, and what happened between two readings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rapidjson/document.h>

namespace nereid::cli {

// How often something took place and how long it took altogether.
struct DurationSum {
  uint64_t count = 0;
  uint64_t ns = 0;

  double mean_ns() const { return count == 0 ? 0 : static_cast<double>(ns) / count; }
  friend DurationSum operator-(const DurationSum& a, const DurationSum& b);
};

// Executions with one batch size.
struct BatchNumbers {
  uint64_t batch_size = 0;
  DurationSum compute_input;
  DurationSum compute_infer;
  DurationSum compute_output;
};

// One version of a model. A value type.
struct ModelNumbers {
  std::string name;
  std::string version;
  uint64_t last_inference_ms = 0;  // since 1970; 0: none yet
  uint64_t inference_count = 0;
  uint64_t execution_count = 0;
  DurationSum success;
  DurationSum fail;
  DurationSum queue;
  DurationSum compute_input;
  DurationSum compute_infer;
  DurationSum compute_output;
  DurationSum cache_hit;
  std::vector<BatchNumbers> batches;

  uint64_t requests() const { return success.count + fail.count; }
  // Inferences in an execution on average; 0 without executions.
  double mean_batch() const;
  double mean_compute_ns() const;
};

// Reads the reply to GET /v2/models/stats.
std::vector<ModelNumbers> ReadModelNumbers(const rapidjson::Value& document);

// Returns what `now` has more than `before`, the reading of the same version; all of `now` if the
// counters began anew in between, as they do when a model is loaded again.
ModelNumbers Since(const ModelNumbers& before, const ModelNumbers& now);

}  // namespace nereid::cli
