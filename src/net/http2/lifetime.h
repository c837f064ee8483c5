// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of one connection: the client's first settings must come in time, and a
// connection that is to end says so twice. The first GOAWAY names no stream, so that calls on their
// way still count; the second one, which names the last call that does, follows when the client has
// answered a ping, or after a second.
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
    uint64_t next_ns = 0;         // when to ask again; kNever: not by the clock
  };

  // The connection was opened at `now_ns`. `options` outlives it.
  Lifetime(const GrpcServerOptions& options, uint64_t now_ns)
      : options_(options), opened_ns_(now_ns) {}

  // The client's first settings came.
  void NoteSettings() { has_settings_ = true; }
  // What is due at `now_ns`. Each of starts_drain and confirms_drain is true once at most.
  Decision Check(uint64_t now_ns);
  // The connection is to end. False: it is ending already. Otherwise the first GOAWAY and a ping
  // are due, and Check at drain_due_ns() next.
  bool StartDrain(uint64_t now_ns);
  uint64_t drain_due_ns() const;
  // The client answered a ping. True: the second GOAWAY is due.
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
