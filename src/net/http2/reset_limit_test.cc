// SPDX-License-Identifier: Apache-2.0
#include "http2/reset_limit.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

TEST(ResetLimit, AllowsABurstAndThenSomeEverySecond) {
  GrpcServerOptions options;
  options.reset_burst = 3;
  options.resets_per_second = 2;
  ResetLimit limit(options, kStart);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.OnReset(kStart));
  EXPECT_FALSE(limit.OnReset(kStart));
  // One more is permitted by now.
  EXPECT_TRUE(limit.OnReset(kStart + kSecond));
  EXPECT_FALSE(limit.OnReset(kStart + kSecond));
}

TEST(ResetLimit, AQuietTimeAllowsNoMoreThanTheBurst) {
  GrpcServerOptions options;
  options.reset_burst = 3;
  options.resets_per_second = 1000;
  ResetLimit limit(options, kStart);
  const uint64_t later_ns = kStart + 3600 * kSecond;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.OnReset(later_ns));
  EXPECT_FALSE(limit.OnReset(later_ns));
}

}  // namespace
}  // namespace nereid::http2
