// SPDX-License-Identifier: Apache-2.0
// Which statistics are collected follows Triton's core/src/metric_model_reporter.cc.
#include "core/observers.h"

#include <algorithm>

namespace nereid::core {

FirstResponses::FirstResponses(std::vector<double> bounds_ms)
    : bounds_ms_(std::move(bounds_ms)),
      counts_(new std::atomic<uint64_t>[bounds_ms_.size() + 1]()) {}

void FirstResponses::Record(uint64_t ms) {
  const auto bucket =
      std::ranges::lower_bound(bounds_ms_, static_cast<double>(ms)) - bounds_ms_.begin();
  counts_[static_cast<size_t>(bucket)].fetch_add(1);
  sum_ms_.fetch_add(ms);
}

std::vector<uint64_t> FirstResponses::Counts() const {
  std::vector<uint64_t> counts(bounds_ms_.size() + 1);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = counts_[i].load();
  return counts;
}

Observers::Observers(const ObserveOptions& options) {
  if (options.first_response_bounds_ms) {
    first_response = std::make_unique<FirstResponses>(*options.first_response_bounds_ms);
  }
  if (options.quantiles.empty()) return;
  const auto make = [&] { return std::make_unique<observe::Summary>(options.quantiles); };
  // With a cache the duration of a request would mix hits and misses, so this summary does not
  // exist.
  if (!options.is_cached) request = make();
  queue = make();
  compute_input = make();
  compute_infer = make();
  compute_output = make();
  if (options.is_cached) {
    cache_hit = make();
    cache_miss = make();
  }
}

}  // namespace nereid::core
