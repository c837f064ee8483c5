// SPDX-License-Identifier: Apache-2.0
#include "load/driver.h"

#include <algorithm>
#include <utility>

namespace nereid::bench {

Driver::Driver(const Options& options, Requests requests, Send send)
    : requests_(std::move(requests)),
      send_(std::move(send)),
      warmup_seconds_(options.Number("warmup", options.Has("requests") ? 0 : 0.3)),
      seconds_(options.Number("seconds", 2)),
      rate_(options.Number("rate", 0)),
      stall_(Seconds(options.Number("stall", 5))),
      expected_(options.Count("responses", 1)),
      limit_(options.Count("requests", 0)) {}

void Driver::Begin() {
  const auto now = Clock::now();
  const auto from = now + Seconds(warmup_seconds_);
  end_ = limit_ != 0 ? Clock::time_point::max() : from + Seconds(seconds_);
  recorder_.Measure(from, end_);
  last_progress_ = next_arrival_ = now;
  if (rate_ > 0) {
    idle_ = slots_;
  } else {
    for (Slot* slot : slots_) Start(*slot, now);
  }
}

void Driver::Tick() {
  const auto now = Clock::now();
  if (rate_ > 0 && !is_ending_) StartDue(now);
  CheckEnd(now);
}

void Driver::StartDue(Clock::time_point now) {
  std::exponential_distribution<double> pause(rate_);
  for (; next_arrival_ <= now; next_arrival_ += Seconds(pause(random_))) {
    if (idle_.empty()) {
      waiting_.push_back(next_arrival_);
      late_ = std::max<uint64_t>(late_, waiting_.size());
    } else {
      Slot* slot = idle_.back();
      idle_.pop_back();
      Start(*slot, next_arrival_);
    }
  }
}

void Driver::CheckEnd(Clock::time_point now) {
  if (now >= end_) is_ending_ = true;
  if (progress_ != seen_progress_) {
    seen_progress_ = progress_;
    last_progress_ = now;
  }
  if (busy_ == 0 || now - last_progress_ < stall_) return;
  for (Slot* slot : slots_) {
    if (slot->is_busy) recorder_.Lost(expected_ - std::min(expected_, slot->responses));
  }
  if (!is_ending_) recorder_.EndAt(now);
  recorder_.Stalled();
  is_ending_ = true;
  busy_ = 0;
}

bool Driver::Responded(Slot& slot, uint64_t count) {
  // Only the time of the first response is needed.
  if (slot.responses == 0) slot.first = Clock::now();
  ++progress_;
  slot.responses += count;
  return slot.responses >= expected_;
}

void Driver::Finished(Slot& slot) {
  const auto now = Clock::now();
  ++progress_;
  if (slot.responses < expected_) recorder_.Lost(expected_ - slot.responses);
  recorder_.Answered(slot.since, slot.first, now, slot.responses);
  slot.is_busy = false;
  --busy_;
  if (limit_ != 0 && recorder_.answered() >= limit_ && !is_ending_) {
    is_ending_ = true;
    recorder_.EndAt(now);
  }
  if (is_ending_ || now >= end_) {
    // A sequence that has begun must be ended, or the server would keep a slot for it.
    if (slot.place.position != 0) Start(slot, now);
  } else if (limit_ != 0 && started_ >= limit_) {
    // The limit is reached: the requests in flight are the last ones.
  } else if (rate_ == 0) {
    Start(slot, now);
  } else if (!waiting_.empty()) {
    Start(slot, waiting_.front());
    waiting_.pop_front();
  } else {
    idle_.push_back(&slot);
  }
}

void Driver::Start(Slot& slot, Clock::time_point since) {
  slot.since = since;
  slot.responses = 0;
  slot.is_busy = true;
  ++busy_;
  ++started_;
  send_(slot, requests_.Next(slot.place, is_ending_ || since >= end_));
}

}  // namespace nereid::bench
