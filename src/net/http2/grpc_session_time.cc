// SPDX-License-Identifier: Apache-2.0
// What happens by the clock: deadlines of calls, keep-alive, ping strikes, connection age,
// draining.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "http2/grpc_connection.h"
#include "http2/grpc_session.h"
#include "http2/grpc_wire.h"

namespace nereid::http2 {
namespace {

// Clients that send less often than this between pings of their own, and have no call, are too
// eager.
constexpr uint64_t kIdlePingIntervalNs = uint64_t{7200} * 1'000'000'000;
// A client that does not answer the ping after the first GOAWAY gets the second one after this
// long.
constexpr uint64_t kDrainPingNs = 1'000'000'000;

uint64_t Ns(std::chrono::milliseconds duration) {
  const int64_t ms = duration.count();
  if (ms <= 0) return 0;
  uint64_t ns;
  return __builtin_mul_overflow(static_cast<uint64_t>(ms), 1'000'000u, &ns) ? kNever / 2 : ns;
}

uint64_t Ns(base::TimePoint time) {
  return static_cast<uint64_t>(std::max<int64_t>(0, time.time_since_epoch().count()));
}

}  // namespace

void GrpcSession::AddDeadline(GrpcCall& call) {
  if (deadlines_.size() > 2 * open_calls_ + 64) {
    // Mostly calls that ended in time; forget them, at a cost paid by those that made them.
    std::erase_if(deadlines_,
                  [this](const Deadline& d) { return FindCall(d.stream_id) == nullptr; });
    std::make_heap(deadlines_.begin(), deadlines_.end());
  }
  deadlines_.push_back({Ns(*call.deadline_), call.stream_id_});
  std::push_heap(deadlines_.begin(), deadlines_.end());
  next_due_ns_ = std::min(next_due_ns_, deadlines_.front().at_ns);
}

void GrpcSession::Expire(GrpcCall& call) {
  Fail(call, GrpcStatus::kDeadlineExceeded, "Deadline Exceeded");
}

uint64_t GrpcSession::TickDeadlines(uint64_t now_ns) {
  while (!deadlines_.empty() && deadlines_.front().at_ns <= now_ns) {
    const int32_t stream_id = deadlines_.front().stream_id;
    std::pop_heap(deadlines_.begin(), deadlines_.end());
    deadlines_.pop_back();
    if (GrpcCall* const call = FindCall(stream_id)) Expire(*call);
  }
  return deadlines_.empty() ? kNever : deadlines_.front().at_ns;
}

uint64_t GrpcSession::TickKeepalive(uint64_t now_ns, bool* dead) {
  if (options_.keepalive_time.count() == INT32_MAX) return kNever;
  const uint64_t timeout_ns = Ns(options_.keepalive_timeout);
  if (ping_sent_ns_ != 0) {
    if (now_ns >= ping_sent_ns_ + timeout_ns) *dead = true;
    return ping_sent_ns_ + timeout_ns;
  }
  const uint64_t due_ns = last_received_ns_ + Ns(options_.keepalive_time);
  if (now_ns < due_ns) return due_ns;
  const bool wanted = open_calls_ > 0 || options_.keepalive_permit_without_calls;
  const bool allowed =
      options_.max_pings_without_data == 0 || pings_since_data_ < options_.max_pings_without_data;
  if (!wanted || !allowed)
    return now_ns + std::max<uint64_t>(Ns(options_.keepalive_time), 1'000'000);
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  ++pings_since_data_;
  ping_sent_ns_ = now_ns;
  return now_ns + timeout_ns;
}

uint64_t GrpcSession::TickAge(uint64_t now_ns, bool* dead) {
  uint64_t next_ns = kNever;
  if (!got_settings_) {
    next_ns = opened_ns_ + Ns(options_.preface_timeout);
    if (now_ns >= next_ns) *dead = true;
  }
  if (is_draining_ && !drain_confirmed_) {
    if (now_ns >= drain_started_ns_ + kDrainPingNs) {
      drain_confirmed_ = true;
      nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                            nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                            nullptr, 0);
    } else {
      next_ns = std::min(next_ns, drain_started_ns_ + kDrainPingNs);
    }
  }
  if (!options_.max_connection_age.has_value()) return next_ns;
  const uint64_t age_ns = opened_ns_ + Ns(*options_.max_connection_age);
  if (now_ns < age_ns) return std::min(next_ns, age_ns);
  StartDrain();
  next_ns = std::min(next_ns, drain_started_ns_ + kDrainPingNs);
  if (!options_.max_connection_age_grace.has_value()) return next_ns;
  const uint64_t end_ns = age_ns + Ns(*options_.max_connection_age_grace);
  if (now_ns >= end_ns) *dead = true;
  return std::min(next_ns, end_ns);
}

uint64_t GrpcSession::Tick(uint64_t now_ns, bool* dead) {
  now_ns_ = now_ns;
  next_due_ns_ = TickDeadlines(now_ns);
  next_due_ns_ = std::min(next_due_ns_, TickKeepalive(now_ns, dead));
  next_due_ns_ = std::min(next_due_ns_, TickAge(now_ns, dead));
  return next_due_ns_;
}

// A client that was not given room to send cannot be blamed.
void GrpcSession::CheckProgress() {
  const bool is_fair = !std::exchange(held_room_back_, false);
  if (incomplete_messages_ == 0) return;
  const auto window_ms = static_cast<uint64_t>(options_.message_window.count());
  const uint64_t least = options_.min_message_bytes_per_s * window_ms / 1000;
  for (GrpcCall* call = calls_; call != nullptr; call = call->next_) {
    if (call->prefix_filled_ < kGrpcPrefixBytes) continue;
    const size_t brought =
        call->message_filled_ - std::exchange(call->progress_, call->message_filled_);
    if (std::exchange(call->is_progress_known_, is_fair) && is_fair && brought < least) {
      Fail(*call, GrpcStatus::kDeadlineExceeded,
           fmt::format("The message is arriving too slowly ({} of its {} bytes in {} ms)", brought,
                       call->message_size_, window_ms));
    }
  }
}

void GrpcSession::OnPing() {
  const uint64_t interval_ns = open_calls_ == 0 && !options_.keepalive_permit_without_calls
                                   ? kIdlePingIntervalNs
                                   : Ns(options_.min_recv_ping_interval_without_data);
  const uint64_t last_ns = std::exchange(last_ping_received_ns_, now_ns_);
  if (last_ns == 0 || now_ns_ - last_ns >= interval_ns) return;
  ++ping_strikes_;
  if (options_.max_ping_strikes == 0 || ping_strikes_ <= options_.max_ping_strikes) return;
  constexpr std::string_view kReason = "too_many_pings";  // the text that gRPC clients look for
  nghttp2_submit_goaway(
      session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
      NGHTTP2_ENHANCE_YOUR_CALM, reinterpret_cast<const uint8_t*>(kReason.data()), kReason.size());
  is_condemned_ = true;
}

void GrpcSession::StartDrain() {
  if (is_draining_) return;
  is_draining_ = true;
  drain_started_ns_ = now_ns_;
  nghttp2_submit_shutdown_notice(session_);
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  next_due_ns_ = std::min(next_due_ns_, now_ns_ + kDrainPingNs);
  for (GrpcCall* call = calls_; call != nullptr; call = call->next_) {
    if (call->events_ != nullptr && !call->finished_) call->events_->OnDrain();
  }
}

}  // namespace nereid::http2
