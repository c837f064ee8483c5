// SPDX-License-Identifier: Apache-2.0
#include "http2/event_limit.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

TEST(EventLimit, AllowsABurstAndThenSomeEverySecond) {
  EventLimit limit(2, kStart);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit.OnEvent(kStart));
  EXPECT_FALSE(limit.OnEvent(kStart));
  // One more is permitted by now.
  EXPECT_TRUE(limit.OnEvent(kStart + kSecond));
  EXPECT_FALSE(limit.OnEvent(kStart + kSecond));
}

TEST(EventLimit, AQuietTimeAllowsNoMoreThanTheBurst) {
  EventLimit limit(1, kStart);
  const uint64_t later_ns = kStart + 3600 * kSecond;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.OnEvent(later_ns));
  EXPECT_FALSE(limit.OnEvent(later_ns));
}

}  // namespace
}  // namespace nereid::http2
