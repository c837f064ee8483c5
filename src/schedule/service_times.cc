// SPDX-License-Identifier: Apache-2.0
#include "schedule/service_times.h"

#include <algorithm>
#include <utility>

namespace nereid::schedule {
namespace {

// The weight of a new sample is one part in so many.
constexpr int64_t kSamples = 8;
// After so many executions that left nobody waiting, what is known about the others is too old.
constexpr size_t kOldAfter = 16;
constexpr uint64_t kHundred = 100;

uint64_t Moved(uint64_t average, uint64_t sample) {
  const auto step = (static_cast<int64_t>(sample) - static_cast<int64_t>(average)) / kSamples;
  return static_cast<uint64_t>(static_cast<int64_t>(average) + step);
}

}  // namespace

void RecentAverage::Note(uint64_t sample) {
  if (!is_known_) {
    *this = {};
    is_known_ = true;
    value_ = sample;
    return;
  }
  deviation_ = Moved(deviation_, sample > value_ ? sample - value_ : value_ - sample);
  value_ = Moved(value_, sample);
}

void ServiceTimes::AddInstance(size_t instance) {
  if (instance >= instances_.size()) instances_.resize(instance + 1);
  instances_[instance] = {.is_present = true, .batch = {}};
  ++instance_count_;
}

void ServiceTimes::RetireInstance(size_t instance) {
  instances_[instance].is_present = false;
  --instance_count_;
}

void ServiceTimes::NoteTaken(size_t instance, const TakenBatch& batch, uint64_t now_ns) {
  instances_[instance].taken_ns = now_ns;
  instances_[instance].batch = batch;
  executing_count_ += batch.request_count;
}

PastExecution ServiceTimes::NoteEnded(size_t instance, uint64_t now_ns) {
  const uint64_t taken_ns = std::exchange(instances_[instance].taken_ns, 0);
  // An execution that began before this was switched on has no beginning.
  if (taken_ns == 0 || now_ns < taken_ns) return {};
  const TakenBatch& batch = instances_[instance].batch;
  executing_count_ -= batch.request_count;
  const uint64_t duration_ns = now_ns - taken_ns;
  items_per_request_.Note(kHundred * batch.item_count / std::max<size_t>(batch.request_count, 1));
  if (batch.leaves_others) {
    since_full_ = 0;
    // One that hung must not be taken for the rule because it is the first that left others
    // waiting.
    if (!full_ns_.is_known()) full_ns_ = any_ns_;
    full_ns_.Note(duration_ns);
    full_requests_.Note(kHundred * batch.request_count);
  } else if (++since_full_ >= kOldAfter) {
    full_ns_.Forget();
    full_requests_.Forget();
  }
  any_ns_.Note(duration_ns);
  return {.request_count = batch.request_count,
          .waited_ns = batch.waited_ns,
          .duration_ns = duration_ns};
}

uint64_t ServiceTimes::RequestsPerExecution() const {
  if (max_items_ == 0) return 1;
  // Until an execution has left others waiting, full batches are expected: a request that is
  // admitted in vain costs less than one that is refused without need.
  const uint64_t hundredths =
      full_requests_.is_known()
          ? full_requests_.value()
          : kHundred * kHundred * max_items_ / std::max(items_per_request_.value(), kHundred);
  return std::max<uint64_t>(hundredths / kHundred, 1);
}

uint64_t ServiceTimes::UntilIdleNs(uint64_t now_ns) const {
  const uint64_t duration_ns = Duration().value();
  uint64_t least_ns = UINT64_MAX;
  for (const Instance& instance : instances_) {
    if (!instance.is_present) continue;
    if (instance.taken_ns == 0) return 0;
    const uint64_t passed_ns = now_ns > instance.taken_ns ? now_ns - instance.taken_ns : 0;
    // An execution that is overdue is expected to take as much longer again.
    least_ns = std::min(
        least_ns, passed_ns < duration_ns ? duration_ns - passed_ns : passed_ns - duration_ns);
  }
  return least_ns == UINT64_MAX ? 0 : least_ns;
}

uint64_t ServiceTimes::UntilStartNs(size_t ahead, uint64_t now_ns) const {
  if (instance_count_ == 0 || !any_ns_.is_known()) return 0;
  const uint64_t executions_ahead = ahead / RequestsPerExecution();
  return UntilIdleNs(now_ns) + executions_ahead * Duration().value() / instance_count_;
}

uint64_t ServiceTimes::UntilResponseNs(size_t ahead, uint64_t now_ns) const {
  const uint64_t until_start_ns = UntilStartNs(ahead, now_ns);
  // An instance that is about to be idle counts as idle: the client whose response it has just sent
  // may be here again before the instance has ended its execution.
  if (ahead == 0 && until_start_ns <= Duration().value() / 16) return 0;
  const uint64_t expected_ns = until_start_ns + Duration().value();
  return expected_ns + expected_ns / 8 + 2 * Duration().deviation();
}

}  // namespace nereid::schedule
