// SPDX-License-Identifier: Apache-2.0
// Detects connections that have made no progress for too long. Pure logic on clock readings
// (milliseconds, never 0), which may be a second old.
#pragma once

#include <cstdint>

#include "http1/http_server.h"

namespace nereid::http1 {

// Confined to its connection's reactor.
class Timeouts {
 public:
  // The activity of a connection.
  enum class Activity : uint8_t {
    kIdle,       // between requests
    kHead,       // part of a head has arrived
    kBody,       // part of a body has arrived
    kHandling,   // the request is with its handler
    kSending,    // the client has not taken the whole reply yet
    kLingering,  // the last reply is sent, and the client has not closed
  };
  // The state that Check judges.
  struct Situation {
    Activity activity = Activity::kIdle;
    uint64_t head_since_ms = 0;  // kHead: when its first byte arrived
    uint64_t body_bytes = 0;     // kBody: how many have arrived
    bool is_draining = false;    // the server waits for its last requests
    bool is_crowded = false;     // descriptors are scarce
  };
  // What the connection has to do.
  enum class Verdict : uint8_t { kGoOn, kClose, kRefuseSlowBody };

  // `options` outlives this object.
  explicit Timeouts(const HttpServerOptions& options) : options_(options) {}

  // Begins a connection. `jitter`, from 0 to 1, spreads the ends of connections that began
  // together.
  void Begin(uint64_t now_ms, double jitter);
  // Makes the connection end with its first reply.
  void ExpireNow() { retire_at_ms_ = 1; }
  // Returns whether the connection has lived long enough to end with its next reply.
  bool IsTooOld(uint64_t now_ms) const { return retire_at_ms_ != 0 && now_ms >= retire_at_ms_; }

  // Records that bytes were received or sent.
  void NoteProgress(uint64_t now_ms) { last_progress_ms_ = now_ms; }
  // Records that a request has been received whole.
  void NoteRequest() { window_since_ms_ = 0; }
  // Called about once a second.
  Verdict Check(uint64_t now_ms, const Situation& situation);

 private:
  // Returns whether too little of a body arrived in the window that has just ended.
  bool IsBodyTooSlow(uint64_t now_ms, uint64_t body_bytes);

  const HttpServerOptions& options_;
  uint64_t last_progress_ms_ = 0;
  uint64_t retire_at_ms_ = 0;     // 0: never
  uint64_t window_since_ms_ = 0;  // of the current body; 0: none has begun
  uint64_t window_bytes_ = 0;     // of the body, that had arrived by then
};

}  // namespace nereid::http1
