// SPDX-License-Identifier: Apache-2.0
#include "http2/flood_guard.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

constexpr uint64_t kStart = 1'000'000'000;

class FloodGuardTest : public ::testing::Test {
 protected:
  FloodGuardTest() {
    options_.resets_per_second = 1;
    options_.control_frames_per_second = 1;
    options_.reset_refusals = &resets_;
    options_.control_refusals = &controls_;
  }
  // Returns how many frames of a kind are accepted at once, at most 100.
  int Accepted(uint8_t type, size_t length, uint8_t flags = 0) {
    FloodGuard guard(options_, kStart);
    nghttp2_frame_hd head{};
    head.type = type;
    head.length = length;
    head.flags = flags;
    int count = 0;
    while (count < 100 && guard.OnFrame(head, kStart)) ++count;
    return count;
  }

  base::Budget resets_;
  base::Budget controls_;
  GrpcServerOptions options_;
};

TEST_F(FloodGuardTest, LimitsFramesThatBelongToNoCall) {
  for (const uint8_t type : {NGHTTP2_SETTINGS, NGHTTP2_PRIORITY}) {
    EXPECT_EQ(Accepted(type, 8), 5) << int{type};
  }
  EXPECT_EQ(Accepted(0xee, 0), 5);
  EXPECT_EQ(Accepted(NGHTTP2_DATA, 0), 5);
  EXPECT_EQ(controls_.refusals(), 4u);
}

TEST_F(FloodGuardTest, AllowsMorePings) {
  options_.control_frames_per_second = 0;
  EXPECT_EQ(Accepted(NGHTTP2_PING, 8), 0);
  options_.control_frames_per_second = 1;
  EXPECT_EQ(Accepted(NGHTTP2_PING, 8), 100);
}

TEST_F(FloodGuardTest, LeavesTheFramesOfCallsAlone) {
  EXPECT_EQ(Accepted(NGHTTP2_DATA, 1), 100);
  EXPECT_EQ(Accepted(NGHTTP2_DATA, 0, NGHTTP2_FLAG_END_STREAM), 100);
  EXPECT_EQ(Accepted(NGHTTP2_HEADERS, 20), 100);
  EXPECT_EQ(Accepted(NGHTTP2_WINDOW_UPDATE, 4), 100);
  EXPECT_EQ(controls_.refusals(), 0u);
}

TEST_F(FloodGuardTest, CountsAConnectionOnce) {
  FloodGuard guard(options_, kStart);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(guard.OnReset(kStart));
  EXPECT_FALSE(guard.OnReset(kStart));
  EXPECT_TRUE(guard.OnReset(kStart));
  EXPECT_EQ(resets_.refusals(), 1u);
}

}  // namespace
}  // namespace nereid::http2
