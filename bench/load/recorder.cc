// SPDX-License-Identifier: Apache-2.0
#include "load/recorder.h"

#include <algorithm>
#include <cstdio>

namespace nereid::bench {
namespace {

int64_t Nanoseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

// Returns microseconds; 0 if nothing was measured.
double Quantile(const std::vector<int64_t>& sorted_ns, double share) {
  if (sorted_ns.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted_ns.size()));
  return static_cast<double>(sorted_ns[std::min(sorted_ns.size() - 1, at)]) / 1000.0;
}

}  // namespace

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Recorder::Measure(Clock::time_point from, Clock::time_point to) {
  from_ = from;
  to_ = to;
  latencies_ns_.reserve(1 << 20);
}

void Recorder::Answered(Clock::time_point since, Clock::time_point first, Clock::time_point now,
                        uint64_t responses) {
  ++all_;
  responses_ += responses;
  if (since < from_ || since > to_) return;
  measured_responses_ += responses;
  latencies_ns_.push_back(Nanoseconds(now - since));
  if (responses > 1) first_ns_.push_back(Nanoseconds(first - since));
}

void Recorder::Print(uint64_t late, uint64_t unsent) {
  std::sort(latencies_ns_.begin(), latencies_ns_.end());
  std::sort(first_ns_.begin(), first_ns_.end());
  const double seconds = std::chrono::duration<double>(to_ - from_).count();
  const auto measured = static_cast<double>(latencies_ns_.size());
  std::printf("{\"requests\":%zu,\"all_requests\":%llu,\"responses\":%llu,\"lost\":%llu,",
              latencies_ns_.size(), static_cast<unsigned long long>(all_),
              static_cast<unsigned long long>(responses_), static_cast<unsigned long long>(lost_));
  std::printf("\"stalled\":%s,\"seconds\":%.3f,\"per_second\":%.1f,\"responses_per_second\":%.1f,",
              stalled_ ? "true" : "false", seconds, measured / seconds,
              static_cast<double>(measured_responses_) / seconds);
  std::printf("\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,",
              Quantile(latencies_ns_, 0.5), Quantile(latencies_ns_, 0.9),
              Quantile(latencies_ns_, 0.99), Quantile(latencies_ns_, 1));
  std::printf("\"first_p50_us\":%.1f,\"late\":%llu,\"unsent\":%llu}\n", Quantile(first_ns_, 0.5),
              static_cast<unsigned long long>(late), static_cast<unsigned long long>(unsent));
}

}  // namespace nereid::bench
