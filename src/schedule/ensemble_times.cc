// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_times.h"

namespace nereid::schedule {
namespace {

// Returns zero if a backend reported times that run backwards.
uint64_t Between(uint64_t start_ns, uint64_t end_ns) {
  return end_ns > start_ns ? end_ns - start_ns : 0;
}

}  // namespace

void EnsembleTimes::Reset() {
  unsettled_ = 0;
  input_ns_ = infer_ns_ = output_ns_ = 0;
}

void EnsembleTimes::Add(const core::ComputeTimes& times) {
  input_ns_ += Between(times.compute_start_ns, times.compute_input_end_ns);
  infer_ns_ += Between(times.compute_input_end_ns, times.compute_output_start_ns);
  output_ns_ += Between(times.compute_output_start_ns, times.compute_end_ns);
}

core::ComputeTimes EnsembleTimes::Sum(uint64_t start_ns) const {
  core::ComputeTimes times;
  times.compute_start_ns = start_ns;
  times.compute_input_end_ns = times.compute_start_ns + input_ns_;
  times.compute_output_start_ns = times.compute_input_end_ns + infer_ns_;
  times.compute_end_ns = times.compute_output_start_ns + output_ns_;
  return times;
}

}  // namespace nereid::schedule
