// SPDX-License-Identifier: Apache-2.0
#include "http1/timeouts.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace nereid::http1 {
namespace {

constexpr std::chrono::milliseconds kLinger{2'000};
// However much a client still sends, it has had its reply.
constexpr uint64_t kMaxLingerMs = 30'000;
// A client that has sent nothing for so long is unlikely to send just now.
constexpr std::chrono::milliseconds kQuiet{2'000};
// While memory for bodies is short, they need this rate over shorter windows.
constexpr uint64_t kShortBytesPerSecond = 64 << 10;
constexpr uint64_t kShortWindowMs = 4'000;

bool HasPassed(std::chrono::milliseconds limit, uint64_t since_ms, uint64_t now_ms) {
  return now_ms > since_ms && now_ms - since_ms > static_cast<uint64_t>(limit.count());
}

}  // namespace

void Timeouts::Begin(uint64_t now_ms, double jitter) {
  last_progress_ms_ = now_ms;
  const auto age_ms = static_cast<uint64_t>(options_.max_connection_age.count());
  if (age_ms == 0) return;
  const double tenth = static_cast<double>(age_ms) / 10;
  retire_at_ms_ = now_ms + age_ms + static_cast<uint64_t>(tenth * 2 * jitter) - age_ms / 10;
}

Timeouts::Verdict Timeouts::Check(uint64_t now_ms, const Situation& situation) {
  const auto close_if = [](bool is_due) { return is_due ? Verdict::kClose : Verdict::kGoOn; };
  const auto is_stalled = [&](std::chrono::milliseconds limit) {
    return HasPassed(limit, last_progress_ms_, now_ms);
  };
  // A draining server waits for requests, not for clients that have stopped sending one.
  const auto receiving = [&](std::chrono::milliseconds limit) {
    return situation.is_draining ? std::min(limit, options_.drain_receive_timeout) : limit;
  };
  switch (situation.activity) {
    case Activity::kIdle:
      return close_if(is_stalled(options_.idle_timeout) ||
                      ((IsTooOld(now_ms) || situation.is_crowded) && is_stalled(kQuiet)));
    case Activity::kHead:
      return close_if(
          HasPassed(receiving(options_.header_timeout), situation.head_since_ms, now_ms));
    case Activity::kBody:
      if (is_stalled(receiving(options_.body_timeout))) return Verdict::kRefuseSlowBody;
      if (situation.is_short && is_stalled(kQuiet)) return Verdict::kRefuseForOthers;
      if (!IsBodyTooSlow(now_ms, situation)) return Verdict::kGoOn;
      return situation.is_short ? Verdict::kRefuseForOthers : Verdict::kRefuseSlowBody;
    case Activity::kHandling:
      return Verdict::kGoOn;
    case Activity::kSending:
      return close_if(is_stalled(options_.write_timeout) || IsReaderTooSlow(now_ms, situation));
    case Activity::kLingering: {
      uint64_t bytes = 0;
      return close_if(is_stalled(kLinger) ||
                      HasWindowEnded(now_ms, kMaxLingerMs, situation.activity, bytes));
    }
  }
  return Verdict::kGoOn;
}

bool Timeouts::HasWindowEnded(uint64_t now_ms, uint64_t window_ms, Activity activity,
                              uint64_t& bytes) {
  const bool is_new = window_since_ms_ == 0 || window_activity_ != activity;
  if (!is_new && now_ms - window_since_ms_ < window_ms) return false;
  window_since_ms_ = now_ms;
  window_activity_ = activity;
  bytes = std::exchange(window_bytes_, bytes);
  return !is_new;
}

bool Timeouts::IsBodyTooSlow(uint64_t now_ms, const Situation& situation) {
  const auto usual_ms = static_cast<uint64_t>(options_.body_window.count());
  const uint64_t window_ms = situation.is_short ? std::min(usual_ms, kShortWindowMs) : usual_ms;
  const uint64_t least = situation.is_short
                             ? std::max(options_.min_body_bytes_per_s, kShortBytesPerSecond)
                             : options_.min_body_bytes_per_s;
  uint64_t before = situation.body_bytes;
  if (!HasWindowEnded(now_ms, window_ms, situation.activity, before)) return false;
  return situation.body_bytes - before < least * window_ms / 1000;
}

bool Timeouts::IsReaderTooSlow(uint64_t now_ms, const Situation& situation) {
  if (situation.unsent_bytes == 0) return false;
  const auto window_ms = static_cast<uint64_t>(options_.body_window.count());
  uint64_t before = situation.unsent_bytes;
  if (!HasWindowEnded(now_ms, window_ms, situation.activity, before)) return false;
  return before - std::min(before, situation.unsent_bytes) <
         options_.min_read_bytes_per_s * window_ms / 1000;
}

}  // namespace nereid::http1
