// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of one connection: the client's first settings must arrive in time, and
// a connection that has to end sends two GOAWAYs. The first one names no stream, so that calls on
// their way still count; the second one names the last call that counts, and follows when the
// client has acknowledged a ping, or after a second.
#pragma once

#include <cstdint>

#include "http2/grpc_server.h"

namespace nereid::http2 {

// Pure logic on clock readings in nanoseconds. Confined to the holder of its connection.
class Lifetime {
 public:
  struct Decision {
    bool is_dead = false;         // close the connection
    bool confirms_drain = false;  // send the second GOAWAY
    bool starts_drain = false;    // send the first GOAWAY and a ping
    uint64_t next_ns = 0;         // when to check again; kNever: not by the clock
  };

  // Begins a connection at `now_ns`. `options` outlives this object.
  Lifetime(const GrpcServerOptions& options, uint64_t now_ns)
      : options_(options), opened_ns_(now_ns) {}

  // Records that the client's first settings arrived.
  void NoteSettings() { has_settings_ = true; }
  // Returns what is due at `now_ns`. Each of starts_drain and confirms_drain is true at most once.
  Decision Check(uint64_t now_ns);
  // Begins the end of the connection. Returns false if it is ending already; otherwise the first
  // GOAWAY and a ping are due, and then Check at drain_due_ns().
  bool StartDrain(uint64_t now_ns);
  uint64_t drain_due_ns() const;
  // Called when the client has acknowledged a ping. Returns true if the second GOAWAY is due.
  bool ConfirmDrain();
  bool is_draining() const { return drain_ != Drain::kNo; }

 private:
  enum class Drain : uint8_t { kNo, kAnnounced, kConfirmed };

  const GrpcServerOptions& options_;
  const uint64_t opened_ns_;
  uint64_t drain_started_ns_ = 0;
  Drain drain_ = Drain::kNo;
  bool has_settings_ = false;
};

}  // namespace nereid::http2
