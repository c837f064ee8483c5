// SPDX-License-Identifier: Apache-2.0
#include "schedule/concurrency_limit.h"

#include <algorithm>
#include <cmath>

namespace nereid::schedule {
namespace {

// A request may wait for as long again as its execution takes. With that many in flight, each
// instance finds a full batch whenever it is free.
constexpr double kTolerance = 2;
// The weight of one execution in the averages, and of one step in the limit.
constexpr double kSampleWeight = 0.1;
constexpr double kStepWeight = 0.2;
// The limit never falls faster than by a half, however long requests wait.
constexpr double kMinGradient = 0.5;
constexpr double kMinPerInstance = 2;
constexpr double kMax = 100'000;

void Move(double& average, double sample) {
  average = average == 0 ? sample : average + kSampleWeight * (sample - average);
}

}  // namespace

void ConcurrencyLimit::Note(const PastExecution& execution, size_t in_flight,
                            size_t instance_count) {
  if (execution.duration_ns == 0) return;
  const auto duration_ns = static_cast<double>(execution.duration_ns);
  Move(execution_ns_, duration_ns);
  Move(stay_ns_, duration_ns + static_cast<double>(execution.waited_ns));
  const double gradient = std::clamp(kTolerance * execution_ns_ / stay_ns_, kMinGradient, 1.0);
  // A limit that nobody reaches says nothing about what the model could stand.
  if (gradient == 1 && static_cast<double>(in_flight) < limit_ / 2) return;
  const double wanted = limit_ * gradient + std::sqrt(limit_);
  limit_ += kStepWeight * (wanted - limit_);
  const double least = kMinPerInstance * static_cast<double>(std::max<size_t>(instance_count, 1));
  limit_ = std::clamp(limit_, std::min(least, kMax), kMax);
}

}  // namespace nereid::schedule
