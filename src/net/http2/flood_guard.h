// SPDX-License-Identifier: Apache-2.0
// Detects a client that resets too many streams, or sends too many frames that belong to no call.
#pragma once

#include <cstdint>

#include <nghttp2/nghttp2.h>

#include "http2/event_limit.h"
#include "http2/grpc_server.h"

namespace nereid::http2 {

// Pure logic on clock readings in nanoseconds. Confined to the holder of its connection.
class FloodGuard {
 public:
  // `options` outlives this object.
  FloodGuard(const GrpcServerOptions& options, uint64_t now_ns)
      : options_(options),
        resets_(options.resets_per_second, now_ns),
        controls_(options.control_frames_per_second, now_ns),
        pings_(options.control_frames_per_second * kPings, now_ns) {}

  // Called for each frame and each reset. They return false once, when the connection must end.
  bool OnFrame(const nghttp2_frame_hd& head, uint64_t now_ns) {
    if (!IsControl(head)) [[likely]]
      return true;
    EventLimit& limit = head.type == NGHTTP2_PING ? pings_ : controls_;
    return Judge(limit.OnEvent(now_ns), options_.control_refusals);
  }
  bool OnReset(uint64_t now_ns) { return Judge(resets_.OnEvent(now_ns), options_.reset_refusals); }

 private:
  // Some clients measure the network with a ping for each round trip while data flows. Without
  // data, Keepalive ends the connection long before.
  static constexpr uint32_t kPings = 20;

  // Whether a frame belongs to no call, so that nothing but its number limits it. Data without
  // bytes wakes a call and takes none of the window. Window updates are limited by what was sent.
  static bool IsControl(const nghttp2_frame_hd& head) {
    switch (head.type) {
      case NGHTTP2_DATA:
        return head.length == 0 && !(head.flags & NGHTTP2_FLAG_END_STREAM);
      case NGHTTP2_HEADERS:
      case NGHTTP2_CONTINUATION:
      case NGHTTP2_RST_STREAM:
      case NGHTTP2_WINDOW_UPDATE:
        return false;
      default:
        return true;
    }
  }
  bool Judge(bool is_within, base::Budget* refusals) {
    if (is_within || has_ended_) return true;
    has_ended_ = true;
    if (refusals != nullptr) refusals->CountRefusal();
    return false;
  }

  const GrpcServerOptions& options_;
  EventLimit resets_;
  EventLimit controls_;
  EventLimit pings_;
  bool has_ended_ = false;
};

}  // namespace nereid::http2
