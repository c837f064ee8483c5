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
    uint64_t unsent_bytes = 0;   // kSending: how many are left of a whole reply; 0: of a stream
    bool is_draining = false;    // the server waits for its last requests
    bool is_crowded = false;     // descriptors are scarce
    bool is_short = false;       // so is memory for what arrives
  };
  // What the connection has to do.
  enum class Verdict : uint8_t { kGoOn, kClose, kRefuseSlowBody, kRefuseForOthers };

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
  // Begins a window if none is in progress. Returns whether one of `window_ms` has just ended; the
  // next begins with `bytes`.
  bool HasWindowEnded(uint64_t now_ms, uint64_t window_ms, Activity activity, uint64_t& bytes);
  // Returns whether a client read too little of a reply in the window that has just ended.
  bool IsReaderTooSlow(uint64_t now_ms, const Situation& situation);
  // Returns whether too little of a body arrived in the window that has just ended.
  bool IsBodyTooSlow(uint64_t now_ms, const Situation& situation);

  const HttpServerOptions& options_;
  uint64_t last_progress_ms_ = 0;
  uint64_t retire_at_ms_ = 0;  // 0: never
  // The current window of a body or a reply, and how much of that had arrived or was left at its
  // beginning. 0: none has begun.
  uint64_t window_since_ms_ = 0;
  uint64_t window_bytes_ = 0;
  Activity window_activity_ = Activity::kIdle;
};

}  // namespace nereid::http1
