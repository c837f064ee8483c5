// SPDX-License-Identifier: Apache-2.0
#include "loadgen/recorder.h"

#include <algorithm>

namespace nereid::loadgen {
namespace {

// Texts that contain numbers of requests would fill the memory otherwise.
constexpr size_t kMaxTexts = 20;
constexpr std::string_view kOthers = "(other errors)";

}  // namespace

Interval& Recorder::At(base::TimePoint time) {
  const auto index = static_cast<size_t>((time - from_) / interval_);
  if (index >= intervals_.size()) intervals_.resize(index + 1);
  return intervals_[index];
}

void Recorder::CountEnd(base::TimePoint now) {
  ++ended_;
  last_end_ = std::max(last_end_, now);
}

void Recorder::Succeeded(base::TimePoint due, base::TimePoint now, bool is_open) {
  if (IsMeasured(now)) {
    CountEnd(now);
    ++At(now).succeeded;
  }
  const base::TimePoint belongs = is_open ? due : now;
  if (IsMeasured(belongs)) At(belongs).latencies.Add(now - due);
}

void Recorder::Failed(base::TimePoint due, base::TimePoint now, bool is_open,
                      std::string_view text) {
  if (IsMeasured(now)) CountEnd(now);
  if (IsMeasured(is_open ? due : now)) CountErrors(text, 1);
}

void Recorder::CountErrors(std::string_view text, uint64_t count) {
  auto found = errors_.find(text);
  if (found == errors_.end()) {
    const bool is_full = errors_.size() >= kMaxTexts;
    found = errors_.try_emplace(std::string(is_full ? kOthers : text)).first;
  }
  found->second += count;
}

void Recorder::Unfinished(base::TimePoint due, base::TimePoint now) {
  if (!IsMeasured(due)) return;
  ++unfinished_;
  At(due).latencies.Add(now - due);
}

void Recorder::Add(const Recorder& other) {
  if (other.intervals_.size() > intervals_.size()) intervals_.resize(other.intervals_.size());
  for (size_t i = 0; i < other.intervals_.size(); ++i) {
    intervals_[i].succeeded += other.intervals_[i].succeeded;
    intervals_[i].latencies.Add(other.intervals_[i].latencies);
  }
  for (const auto& [text, count] : other.errors_) CountErrors(text, count);
  ended_ += other.ended_;
  unfinished_ += other.unfinished_;
  last_end_ = std::max(last_end_, other.last_end_);
}

}  // namespace nereid::loadgen
