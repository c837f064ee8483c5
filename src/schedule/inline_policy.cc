// SPDX-License-Identifier: Apache-2.0
#include "schedule/inline_policy.h"

#include <algorithm>

namespace nereid::schedule {
namespace {

// The number of executions that are timed exactly after one exceeded the budget. More than a few,
// to detect a model that is slow only now and then.
constexpr uint64_t kWatchedRuns = 256;
// After two requests were there at the same time, so many have to arrive alone before a reactor
// waits for one.
constexpr uint32_t kCrowdedArrivals = 32;

}  // namespace

InlineRecord::InlineRecord(std::chrono::nanoseconds budget, std::chrono::nanoseconds brief,
                           InlineTraits traits)
    : budget_ns_(static_cast<uint64_t>(std::max<int64_t>(budget.count(), 0))),
      brief_ns_(static_cast<uint64_t>(std::max<int64_t>(brief.count(), 0))),
      traits_(traits),
      watched_runs_(kMeasuredRuns) {}

void InlineRecord::Account(uint64_t duration_ns, size_t request_count) {
  // A batch may take as long as its requests might have taken one by one.
  duration_ns /= std::clamp<size_t>(request_count, 1, InlinePolicy::kBudgetsPerRound);
  const bool was_watched = is_watched();
  if (watched_runs_ > 0) --watched_runs_;
  if (duration_ns > budget_ns_ && average_ns_ <= budget_ns_) {
    // Another thread may have had the processor, which must not cost a fast model its place on the
    // reactor. The next executions are timed exactly to find out.
    if (!was_watched) duration_ns = std::min(duration_ns, 2 * budget_ns_);
    watched_runs_ = kWatchedRuns;
  }
  ++execution_count_;
  average_ns_ =
      execution_count_ == 1 ? duration_ns : average_ns_ - average_ns_ / 8 + duration_ns / 8;
}

void InlineRecord::AccountOwn(uint64_t duration_ns) {
  // Another thread may have had the processor.
  duration_ns = std::min(duration_ns, 2 * brief_ns_);
  own_average_ns_ =
      own_average_ns_ == 0 ? duration_ns : own_average_ns_ - own_average_ns_ / 8 + duration_ns / 8;
}

bool ArrivalHistory::Note(bool is_alone) {
  if (!is_alone) {
    until_alone_ = kCrowdedArrivals;
    return false;
  }
  if (until_alone_ == 0) return true;
  --until_alone_;
  return false;
}

uint64_t ExecutionNs(uint64_t passed_ns, const base::ThreadUse& before,
                     const base::ThreadUse& after) {
  if (after.waits != before.waits) return passed_ns;
  return std::min(passed_ns, after.cpu_ns - before.cpu_ns);
}

}  // namespace nereid::schedule
