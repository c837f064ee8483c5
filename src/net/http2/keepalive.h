// SPDX-License-Identifier: Apache-2.0
// Pings in both directions: whether a quiet client still responds, and whether a client sends too
// many.
#pragma once

#include <cstdint>

#include "http2/grpc_server.h"

namespace nereid::http2 {

// Pure logic on clock readings in nanoseconds. Confined to the holder of its connection.
class Keepalive {
 public:
  enum class Verdict : uint8_t { kNothing, kPing, kDead };
  struct Decision {
    Verdict verdict = Verdict::kNothing;
    uint64_t next_ns = 0;  // when to check again
  };

  // `options` outlives this object.
  Keepalive(const GrpcServerOptions& options, uint64_t now_ns)
      : options_(options), last_received_ns_(now_ns) {}

  // Records that any bytes arrived: the client is alive.
  void NoteReceived(uint64_t now_ns) {
    last_received_ns_ = now_ns;
    ping_sent_ns_ = 0;
  }
  // Records that headers or data were sent, between which pings are counted.
  void NoteSent() {
    strikes_ = 0;
    last_ping_received_ns_ = 0;
    pings_since_data_ = 0;
  }
  // Returns what is due at `now_ns`. With kPing, a ping must be sent.
  Decision Check(uint64_t now_ns, bool has_calls);
  // Called for each ping of the client. Returns false if there were too many, and the connection
  // must end.
  bool OnPing(uint64_t now_ns, bool has_calls);

 private:
  const GrpcServerOptions& options_;
  uint64_t last_received_ns_;
  uint64_t ping_sent_ns_ = 0;  // 0: no ping is unacknowledged
  int pings_since_data_ = 0;
  uint64_t last_ping_received_ns_ = 0;
  int strikes_ = 0;
};

}  // namespace nereid::http2
