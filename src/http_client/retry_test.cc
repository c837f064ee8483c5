// SPDX-License-Identifier: Apache-2.0
#include "http_client/retry.h"

#include <gtest/gtest.h>

#include "base/thread.h"

namespace nereid::http_client {
namespace {

constexpr RetryPolicy kThree{.attempts = 3,
                             .first_pause = std::chrono::milliseconds(1),
                             .longest_pause = std::chrono::milliseconds(2)};

TEST(Attempts, AreAsManyAsThePolicySays) {
  Attempts attempts(kThree);
  EXPECT_EQ(attempts.number(), 1);
  EXPECT_TRUE(attempts.Next());
  EXPECT_TRUE(attempts.Next());
  EXPECT_EQ(attempts.number(), 3);
  EXPECT_FALSE(attempts.Next());
}

TEST(Attempts, AreCountedAnewAfterProgress) {
  Attempts attempts(kThree);
  EXPECT_TRUE(attempts.Next());
  EXPECT_TRUE(attempts.Next());
  attempts.Restart();
  EXPECT_EQ(attempts.number(), 1);
  EXPECT_TRUE(attempts.Next());
}

TEST(Attempts, EndWhenTheyAreStopped) {
  std::stop_source stop;
  Attempts attempts(kThree, stop.get_token());
  stop.request_stop();
  attempts.Pause();
  EXPECT_FALSE(attempts.Next());
}

TEST(Attempts, EndAPauseThatIsStopped) {
  constexpr RetryPolicy kLong{.attempts = 3,
                              .first_pause = std::chrono::hours(24),
                              .longest_pause = std::chrono::hours(24)};
  std::stop_source stop;
  Attempts attempts(kLong, stop.get_token());
  const base::Thread stopper("stopper", [&] { stop.request_stop(); });
  attempts.Pause();  // returns at once although the pause is a day
  EXPECT_FALSE(attempts.Next());
}

TEST(AStatus, MayPassWhereTheServerIsOverloadedOrAway) {
  for (const int status : {408, 429, 500, 503}) EXPECT_TRUE(MayPass(status)) << status;
  for (const int status : {200, 301, 400, 403, 404, 412}) EXPECT_FALSE(MayPass(status)) << status;
}

}  // namespace
}  // namespace nereid::http_client
