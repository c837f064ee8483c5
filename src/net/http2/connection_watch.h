// SPDX-License-Identifier: Apache-2.0
// The timeouts that a connection checks about once a second. Pure logic on clock readings in
// milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "http2/grpc_server.h"

namespace nereid::http2 {

// A window that has passed, and what an incomplete message must have brought in it.
struct ProgressWindow {
  uint64_t length_ms = 0;
  uint64_t min_bytes = 0;
};

// Confined to its connection's reactor.
class ConnectionWatch {
 public:
  // `options` outlives this object.
  ConnectionWatch(const GrpcServerOptions& options, uint64_t now_ms)
      : options_(options), read_ms_(now_ms) {}

  // Records that bytes arrived.
  void NoteRead(uint64_t now_ms) { read_ms_ = now_ms; }
  // Records that the socket took bytes again.
  void NoteWritable() { blocked_since_ms_ = 0; }

  // Returns whether a window has passed in which messages must have made progress. While memory for
  // messages is short, windows are shorter and messages must be faster.
  bool IsCheckDue(uint64_t now_ms, bool is_short) {
    const auto usual_ms = static_cast<uint64_t>(options_.message_window.count());
    const uint64_t passed_ms = now_ms - checked_ms_;
    if (passed_ms < (is_short ? std::min(usual_ms, kShortWindowMs) : usual_ms)) return false;
    checked_ms_ = now_ms;
    window_.length_ms = std::min(passed_ms, usual_ms);
    const uint64_t usual = options_.min_message_bytes_per_s;
    const uint64_t per_second = is_short ? std::max(usual, kShortBytesPerSecond) : usual;
    window_.min_bytes = per_second * window_.length_ms / 1000;
    return true;
  }
  // The last window that has passed.
  const ProgressWindow& window() const { return window_; }
  // Returns whether the connection is so quiet that it should end if descriptors are scarce.
  bool IsQuiet(uint64_t now_ms) const {
    return now_ms > read_ms_ && now_ms - read_ms_ > kCrowdedIdleMs;
  }
  // Returns whether the client has taken no byte of pending output for too long. `is_blocked` says
  // that output is pending.
  bool IsStuck(uint64_t now_ms, bool is_blocked) {
    if (!is_blocked) {
      blocked_since_ms_ = 0;
      return false;
    }
    if (blocked_since_ms_ == 0) blocked_since_ms_ = now_ms;
    return now_ms - blocked_since_ms_ >= static_cast<uint64_t>(options_.write_timeout.count());
  }

 private:
  static constexpr uint64_t kCrowdedIdleMs = 2'000;
  static constexpr uint64_t kShortWindowMs = 4'000;
  static constexpr uint64_t kShortBytesPerSecond = 64 << 10;

  const GrpcServerOptions& options_;
  uint64_t checked_ms_ = 0;
  ProgressWindow window_;
  uint64_t read_ms_;
  uint64_t blocked_since_ms_ = 0;  // 0: not blocked at the last sweep
};

}  // namespace nereid::http2
