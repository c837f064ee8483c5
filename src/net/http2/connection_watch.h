// SPDX-License-Identifier: Apache-2.0
// The timeouts that a connection checks about once a second. Pure logic on clock readings in
// milliseconds.
#pragma once

#include <cstdint>

#include "http2/grpc_server.h"

namespace nereid::http2 {

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

  // Returns whether a window has passed in which messages must have made progress.
  bool IsCheckDue(uint64_t now_ms) {
    if (now_ms - checked_ms_ < static_cast<uint64_t>(options_.message_window.count())) return false;
    checked_ms_ = now_ms;
    return true;
  }
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

  const GrpcServerOptions& options_;
  uint64_t checked_ms_ = 0;
  uint64_t read_ms_;
  uint64_t blocked_since_ms_ = 0;  // 0: not blocked at the last sweep
};

}  // namespace nereid::http2
