// SPDX-License-Identifier: Apache-2.0
#include "http2/frame_forecast.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http2/testing/client.h"

namespace nereid::http2 {
namespace {

constexpr size_t kFrame = 16384;

// A message of `size` bytes on stream 1. A part of its first frame, which has `kFrame` bytes, has
// arrived.
class FrameForecastTest : public testing::Test {
 protected:
  void Begin(size_t size, size_t frame = kFrame) {
    buffer_ = base::AcquireBuffer(size);
    room_ = {buffer_.data(), size};
    forecast_.OnFrame(1, frame);
    Arrive(1000);
  }
  void Arrive(size_t bytes) {
    forecast_.OnData(bytes);
    room_ = room_.subspan(bytes);
  }
  bool Plan(Http2Scatter& plan) {
    return forecast_.Plan(buffer_, room_, {rest_.data(), rest_.size()}, plan);
  }
  // Writes `bytes` to where the plan says, as a read does.
  static void Read(const Http2Scatter& plan, std::string_view bytes) {
    for (size_t part = 0; !bytes.empty(); ++part) {
      ASSERT_LT(part, plan.count);
      const std::string_view piece = bytes.substr(0, plan.parts[part].iov_len);
      std::memcpy(plan.parts[part].iov_base, piece.data(), piece.size());
      bytes.remove_prefix(piece.size());
    }
  }
  // Returns what nghttp2 receives. The test handles frames as nghttp2 does.
  std::string Replay(const Http2Scatter& plan, size_t size) {
    std::string fed;
    EXPECT_TRUE(forecast_.Replay(plan, size, [&](const void* data, size_t bytes) {
      const std::string_view piece(static_cast<const char*>(data), bytes);
      if (bytes == 9 && forecast_left_ == 0) {
        forecast_left_ = static_cast<size_t>(static_cast<uint8_t>(piece[1])) << 8 |
                         static_cast<uint8_t>(piece[2]);
        forecast_.OnFrame(1, forecast_left_);
      } else {
        const size_t step = std::min(bytes, forecast_left_);
        forecast_left_ -= step;
        forecast_.OnData(step);
      }
      fed += piece;
      return true;
    }));
    return fed;
  }

  FrameForecast forecast_;
  base::BufferRef buffer_;
  std::span<std::byte> room_;
  std::vector<std::byte> rest_ = std::vector<std::byte>(1000);
  size_t forecast_left_ = kFrame - 1000;
};

TEST_F(FrameForecastTest, TheRestOfAMessageIsLaidOutInFramesAsLongAsTheOneUnderWay) {
  Begin(3 * kFrame + 500);
  EXPECT_EQ(forecast_.stream_id(), 1);
  Http2Scatter plan;
  ASSERT_TRUE(Plan(plan));
  EXPECT_EQ(plan.frames, 3u);
  ASSERT_EQ(plan.count, 8u);  // the rest of the frame, three heads and payloads, and what follows
  const size_t sizes[] = {kFrame - 1000, 9, kFrame, 9, kFrame, 9, 500, 1000};
  for (size_t i = 0; i < plan.count; ++i) EXPECT_EQ(plan.parts[i].iov_len, sizes[i]) << i;
  EXPECT_EQ(plan.parts[0].iov_base, room_.data());
  EXPECT_EQ(plan.parts[2].iov_base, room_.data() + sizes[0]);
  EXPECT_EQ(plan.parts[7].iov_base, rest_.data());
}

TEST_F(FrameForecastTest, ThereIsNothingToPlanOutsideALargeMessage) {
  EXPECT_EQ(forecast_.stream_id(), 0);
  forecast_.OnFrame(1, kFrame);
  EXPECT_EQ(forecast_.stream_id(),
            0);  // nghttp2 may discard it
  Begin(10'000, 5000);
  Http2Scatter small;
  EXPECT_FALSE(Plan(small));
  Begin(100'000, 200'000);  // the frame continues after the message
  Http2Scatter long_frame;
  EXPECT_FALSE(Plan(long_frame));
  forecast_.OnData(200'000);
  EXPECT_EQ(forecast_.stream_id(), 0);
}

TEST_F(FrameForecastTest, ALayoutIsBounded) {
  Begin(size_t{64} << 20);
  Http2Scatter plan;
  ASSERT_TRUE(Plan(plan));
  EXPECT_LE(plan.frames, Http2Scatter::kMaxFrames);
  EXPECT_LE(plan.bytes, Http2Scatter::kMaxBytes + kFrame + 9);
  EXPECT_EQ(plan.count, 1 + 2 * plan.frames);  // the message does not end in it
}

TEST_F(FrameForecastTest, WhatCameAsForetoldIsFedWhereItLies) {
  const std::string payload = Noise(3 * kFrame, 1);
  Begin(3 * kFrame);
  Http2Scatter plan;
  ASSERT_TRUE(Plan(plan));
  const std::string bytes = payload.substr(1000, kFrame - 1000) +
                            Frame(0, 0, 1, payload.substr(kFrame, kFrame)) +
                            Frame(0, 1, 1, payload.substr(2 * kFrame));
  for (const size_t size : {bytes.size(), bytes.size() - 100, kFrame - 995}) {
    forecast_.OnFrame(1, kFrame);
    forecast_.OnData(1000);
    forecast_left_ = kFrame - 1000;
    Read(plan, bytes.substr(0, size));
    EXPECT_TRUE(Replay(plan, size) == bytes.substr(0, size)) << size;
  }
  EXPECT_TRUE(std::memcmp(room_.data(), payload.data() + 1000, kFrame - 1000) == 0);
}

TEST_F(FrameForecastTest, WhatCameOtherwiseIsPutTogetherAndNotForetoldForAWhile) {
  Begin(10 * kFrame);
  Http2Scatter plan;
  ASSERT_TRUE(Plan(plan));
  // A frame of another stream comes in between.
  const std::string bytes =
      Noise(kFrame - 1000, 2) + Frame(0, 0, 3, Noise(3000, 3)) + Frame(0, 0, 1, Noise(500, 4));
  Read(plan, bytes);
  EXPECT_TRUE(Replay(plan, bytes.size()) == bytes);
  Begin(10 * kFrame);
  Http2Scatter next;
  EXPECT_FALSE(Plan(next));
  // A large frame is worth a separate read all the same.
  Begin(20 * kFrame, 5 * kFrame);
  Http2Scatter large;
  ASSERT_TRUE(Plan(large));
  EXPECT_EQ(large.frames, 0u);
  EXPECT_EQ(large.parts[1].iov_base, rest_.data());
}

TEST_F(FrameForecastTest, FeedingEndsWhereItFails) {
  Begin(3 * kFrame);
  Http2Scatter plan;
  ASSERT_TRUE(Plan(plan));
  int calls = 0;
  EXPECT_FALSE(forecast_.Replay(plan, kFrame, [&](const void*, size_t) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace nereid::http2
