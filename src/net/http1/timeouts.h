// SPDX-License-Identifier: Apache-2.0
// Which connections have made no progress for too long. Pure logic on clock readings (milliseconds,
// never 0), which are about a second old where that is good enough.
#pragma once

#include <cstdint>

#include "http1/http_server.h"

namespace nereid::http1 {

// Confined to its connection's reactor.
class Timeouts {
 public:
  // What a connection is at.
  enum class Activity : uint8_t {
    kIdle,       // between requests
    kHead,       // part of a head has come
    kBody,       // part of a body has come
    kHandling,   // the request is with its handler
    kSending,    // the client has not taken the whole reply yet
    kLingering,  // the last reply is sent, and the client has not closed
  };
  // What Check is to judge.
  struct Situation {
    Activity activity = Activity::kIdle;
    uint64_t head_since_ms = 0;  // kHead: its first byte came then
    uint64_t body_bytes = 0;     // kBody: so many have come
    bool is_draining = false;    // the server waits for its last requests
    bool is_crowded = false;     // connections are few, and others want one
  };
  // What the connection is to do.
  enum class Verdict : uint8_t { kGoOn, kClose, kRefuseSlowBody };

  // `options` outlives it.
  explicit Timeouts(const HttpServerOptions& options) : options_(options) {}

  // The connection begins. `jitter`, from 0 to 1, spreads the ends of connections that began
  // together.
  void Begin(uint64_t now_ms, double jitter);
  // The connection is to end with its first reply.
  void ExpireNow() { retire_at_ms_ = 1; }
  // Whether the connection has lived long enough to end with its next reply.
  bool IsTooOld(uint64_t now_ms) const { return retire_at_ms_ != 0 && now_ms >= retire_at_ms_; }

  // Bytes were received or sent.
  void NoteProgress(uint64_t now_ms) { last_progress_ms_ = now_ms; }
  // A request has been received whole.
  void NoteRequest() { window_since_ms_ = 0; }
  // Every second or so.
  Verdict Check(uint64_t now_ms, const Situation& situation);

 private:
  // Whether the window of a body that ended just now brought too little of it.
  bool IsBodyTooSlow(uint64_t now_ms, uint64_t body_bytes);

  const HttpServerOptions& options_;
  uint64_t last_progress_ms_ = 0;
  uint64_t retire_at_ms_ = 0;     // 0: never
  uint64_t window_since_ms_ = 0;  // of the body that is coming; 0: none has begun
  uint64_t window_bytes_ = 0;     // of the body, that had come by then
};

}  // namespace nereid::http1
