// SPDX-License-Identifier: Apache-2.0
// How many streams a client may reset: some at once, and some every second from then on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "http2/grpc_server.h"

namespace nereid::http2 {

// Pure logic on clock readings in nanoseconds. Confined to the holder of its connection.
class ResetLimit {
 public:
  // `options` outlives this object.
  ResetLimit(const GrpcServerOptions& options, uint64_t now_ns)
      : options_(options), tokens_(options.reset_burst), counted_ns_(now_ns) {}

  // Called when the client resets a stream. Returns false if that is one too many.
  bool OnReset(uint64_t now_ns) {
    const double seconds = static_cast<double>(now_ns - counted_ns_) / 1e9;
    counted_ns_ = now_ns;
    tokens_ =
        std::min<double>(options_.reset_burst, tokens_ + seconds * options_.resets_per_second) - 1;
    return tokens_ >= 0;
  }

 private:
  const GrpcServerOptions& options_;
  double tokens_;
  uint64_t counted_ns_;
};

}  // namespace nereid::http2
