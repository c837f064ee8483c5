// SPDX-License-Identifier: Apache-2.0
#include "http2/keepalive.h"

#include <algorithm>
#include <utility>

#include "http2/nanoseconds.h"

namespace nereid::http2 {
namespace {

// A client without calls that sends pings more often than this is misbehaving.
constexpr uint64_t kIdlePingIntervalNs = uint64_t{7200} * 1'000'000'000;

}  // namespace

Keepalive::Decision Keepalive::Check(uint64_t now_ns, bool has_calls) {
  if (options_.keepalive_time.count() == INT32_MAX) return {Verdict::kNothing, kNever};
  const uint64_t timeout_ns = Ns(options_.keepalive_timeout);
  if (ping_sent_ns_ != 0) {
    const uint64_t end_ns = ping_sent_ns_ + timeout_ns;
    return {now_ns >= end_ns ? Verdict::kDead : Verdict::kNothing, end_ns};
  }
  const uint64_t due_ns = last_received_ns_ + Ns(options_.keepalive_time);
  if (now_ns < due_ns) return {Verdict::kNothing, due_ns};
  const bool is_wanted = has_calls || options_.keepalive_permit_without_calls;
  const bool is_allowed =
      options_.max_pings_without_data == 0 || pings_since_data_ < options_.max_pings_without_data;
  if (!is_wanted || !is_allowed) {
    constexpr uint64_t kMinWaitNs = 1'000'000;
    return {Verdict::kNothing, now_ns + std::max(Ns(options_.keepalive_time), kMinWaitNs)};
  }
  ++pings_since_data_;
  ping_sent_ns_ = now_ns;
  return {Verdict::kPing, now_ns + timeout_ns};
}

bool Keepalive::OnPing(uint64_t now_ns, bool has_calls) {
  const uint64_t interval_ns = !has_calls && !options_.keepalive_permit_without_calls
                                   ? kIdlePingIntervalNs
                                   : Ns(options_.min_recv_ping_interval_without_data);
  const uint64_t last_ns = std::exchange(last_ping_received_ns_, now_ns);
  if (last_ns == 0 || now_ns - last_ns >= interval_ns) return true;
  ++strikes_;
  return options_.max_ping_strikes == 0 || strikes_ <= options_.max_ping_strikes;
}

}  // namespace nereid::http2
