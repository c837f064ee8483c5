// SPDX-License-Identifier: Apache-2.0
// The most recent streams of a connection: which ones the client has begun, and which it has ended.
// It must begin streams in order and send no headers for those that it has ended. nghttp2 forgets a
// stream at its end and ignores what arrives for it later. (It ignores data without any callback.)
#pragma once

#include <cstdint>
#include <utility>

namespace nereid::http2 {

// Confined to the holder of its connection.
class StreamHistory {
 public:
  enum class Verdict : uint8_t {
    kFine,      // or too long ago to know
    kBadOrder,  // a stream that was skipped is begun
    kEnded,     // the client has ended the stream
  };

  // Called for headers of a client's stream. Returns false if the stream is not newer than all
  // others, so that Judge decides unless it is open.
  bool Begin(int32_t stream_id) {
    if (stream_id <= newest_) return false;
    const int64_t step = (int64_t{stream_id} - std::exchange(newest_, stream_id) + 1) / 2;
    begun_ = (step < kRemembered ? begun_ << step : 0) | 1;
    ended_ = step < kRemembered ? ended_ << step : 0;
    return true;
  }
  // Judges the headers of a stream that is not open and not newer than all others.
  Verdict Judge(int32_t stream_id) const {
    const uint64_t stream = Bit(stream_id);
    if (stream == 0) return Verdict::kFine;
    if (!(begun_ & stream)) return Verdict::kBadOrder;
    return ended_ & stream ? Verdict::kEnded : Verdict::kFine;
  }
  // Records that the client sends no more for the stream.
  void End(int32_t stream_id) { ended_ |= Bit(stream_id); }

 private:
  static constexpr int32_t kRemembered = 64;

  // Returns the stream's bit in begun_ and ended_; 0 for those that are not remembered.
  uint64_t Bit(int32_t stream_id) const {
    const int32_t age = (newest_ - stream_id) / 2;
    return age < kRemembered ? uint64_t{1} << age : 0;
  }

  int32_t newest_ = -1;
  uint64_t begun_ = 0;  // the newest stream in the lowest bit
  uint64_t ended_ = 0;
};

}  // namespace nereid::http2
