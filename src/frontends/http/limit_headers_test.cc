// SPDX-License-Identifier: Apache-2.0
#include "http/limit_headers.h"

#include <gtest/gtest.h>

namespace nereid::http {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RequestTimeout, IsInSecondsUnlessItHasAUnit) {
  EXPECT_EQ(*ParseRequestTimeout("2"), seconds(2));
  EXPECT_EQ(*ParseRequestTimeout("0.25"), milliseconds(250));
  EXPECT_EQ(*ParseRequestTimeout("1.5s"), milliseconds(1500));
  EXPECT_EQ(*ParseRequestTimeout("250ms"), milliseconds(250));
  EXPECT_EQ(*ParseRequestTimeout("800us"), microseconds(800));
}

TEST(RequestTimeout, HasAnEnd) {
  EXPECT_EQ(*ParseRequestTimeout("99999999999999999999"), seconds(1'000'000));
}

TEST(RequestTimeout, MustBeATimeAboveZero) {
  for (const char* text : {"", "0", "-1", "1h", "s", "nan", "inf", "1e3", "0x10", "1 s", "1.5.5"}) {
    EXPECT_FALSE(ParseRequestTimeout(text).ok()) << text;
  }
}

TEST(RetryAfter, IsInWholeSecondsRoundedUp) {
  EXPECT_EQ(RetryAfterLine(milliseconds(1)), "Retry-After: 1\r\n");
  EXPECT_EQ(RetryAfterLine(milliseconds(1500)), "Retry-After: 2\r\n");
}

TEST(RateLimit, HasALineForEachNumberAndNoneWithoutALimit) {
  std::string lines = "X: y\r\n";
  AppendRateLimitLines({}, lines);
  EXPECT_EQ(lines, "X: y\r\n");
  AppendRateLimitLines({.limit = 10, .remaining = 3, .reset_s = 1}, lines);
  EXPECT_EQ(lines,
            "X: y\r\nRateLimit-Limit: 10\r\nRateLimit-Remaining: 3\r\nRateLimit-Reset: 1\r\n");
}

}  // namespace
}  // namespace nereid::http
