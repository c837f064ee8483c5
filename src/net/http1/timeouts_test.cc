// SPDX-License-Identifier: Apache-2.0
#include "http1/timeouts.h"

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

using std::chrono::milliseconds;
using Activity = Timeouts::Activity;
using Verdict = Timeouts::Verdict;

constexpr uint64_t kStart = 1'000'000;

struct TimeoutsTest : testing::Test {
  // Returns the verdict `after_ms` milliseconds after the last progress, at kStart.
  Verdict After(uint64_t after_ms, Timeouts::Situation situation) {
    Timeouts timeouts(options);
    timeouts.Begin(kStart, 0.5);
    if (situation.activity == Activity::kHead) situation.head_since_ms = kStart;
    return timeouts.Check(kStart + after_ms, situation);
  }
  HttpServerOptions options;
};

TEST_F(TimeoutsTest, EachActivityHasItsOwnLimit) {
  options.idle_timeout = milliseconds(10);
  options.header_timeout = milliseconds(20);
  options.body_timeout = milliseconds(30);
  options.write_timeout = milliseconds(40);
  const struct {
    Activity activity;
    uint64_t limit_ms;
    Verdict verdict;
  } cases[] = {{Activity::kIdle, 10, Verdict::kClose},
               {Activity::kHead, 20, Verdict::kClose},
               {Activity::kBody, 30, Verdict::kRefuseSlowBody},
               {Activity::kSending, 40, Verdict::kClose},
               {Activity::kLingering, 2000, Verdict::kClose}};
  for (const auto& c : cases) {
    EXPECT_EQ(Verdict::kGoOn, After(c.limit_ms, {.activity = c.activity})) << c.limit_ms;
    EXPECT_EQ(c.verdict, After(c.limit_ms + 1, {.activity = c.activity})) << c.limit_ms;
  }
  EXPECT_EQ(Verdict::kGoOn, After(1'000'000'000, {.activity = Activity::kHandling}));
}

TEST_F(TimeoutsTest, ProgressBeginsTheWaitAnew) {
  options.idle_timeout = milliseconds(10);
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  timeouts.NoteProgress(kStart + 8);
  EXPECT_EQ(Verdict::kGoOn, timeouts.Check(kStart + 18, {}));
  EXPECT_EQ(Verdict::kClose, timeouts.Check(kStart + 19, {}));
}

TEST_F(TimeoutsTest, AClientThatGoesOnSendingAfterItsReplyIsLeftInTheEnd) {
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  const auto check = [&](uint64_t at_ms) {
    timeouts.NoteProgress(kStart + at_ms);
    return timeouts.Check(kStart + at_ms, {.activity = Activity::kLingering});
  };
  for (uint64_t at_ms = 0; at_ms < 30'000; at_ms += 1000) EXPECT_EQ(Verdict::kGoOn, check(at_ms));
  EXPECT_EQ(Verdict::kClose, check(30'000));
}

TEST_F(TimeoutsTest, AClockReadingFromBeforeTheLastProgressClosesNothing) {
  options.idle_timeout = milliseconds(10);
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  EXPECT_EQ(Verdict::kGoOn, timeouts.Check(kStart - 500, {}));
}

TEST_F(TimeoutsTest, AHeadMustBeCompleteInTimeHoweverItsBytesArrive) {
  options.header_timeout = milliseconds(20);
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  timeouts.NoteProgress(kStart + 20);
  EXPECT_EQ(Verdict::kClose,
            timeouts.Check(kStart + 21, {.activity = Activity::kHead, .head_since_ms = kStart}));
}

TEST_F(TimeoutsTest, ADrainingServerWaitsLessForRequestsToCome) {
  options.drain_receive_timeout = milliseconds(5);
  for (const auto activity : {Activity::kHead, Activity::kBody}) {
    EXPECT_EQ(Verdict::kGoOn, After(6, {.activity = activity}));
    EXPECT_NE(Verdict::kGoOn, After(6, {.activity = activity, .is_draining = true}));
  }
  EXPECT_EQ(Verdict::kGoOn, After(6, {.activity = Activity::kSending, .is_draining = true}));
}

TEST_F(TimeoutsTest, ABodyMustBringEnoughInEveryWindow) {
  options.body_window = milliseconds(1000);
  options.min_body_bytes_per_s = 100;
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  uint64_t bytes = 7;  // bytes that arrived with the head do not count
  const auto check = [&](uint64_t at_ms) {
    timeouts.NoteProgress(kStart + at_ms);
    return timeouts.Check(kStart + at_ms, {.activity = Activity::kBody, .body_bytes = bytes});
  };
  EXPECT_EQ(Verdict::kGoOn, check(0));
  EXPECT_EQ(Verdict::kGoOn, check(999));  // the window has not ended
  bytes += 100;
  EXPECT_EQ(Verdict::kGoOn, check(1000));
  bytes += 99;
  EXPECT_EQ(Verdict::kRefuseSlowBody, check(2000));
  // The next body starts with its own window.
  timeouts.NoteRequest();
  bytes = 0;
  EXPECT_EQ(Verdict::kGoOn, check(9000));
  EXPECT_EQ(Verdict::kRefuseSlowBody, check(10000));
}

TEST_F(TimeoutsTest, ABodyMustArriveFasterWhileMemoryIsShort) {
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  uint64_t bytes = 0;
  const auto check = [&](uint64_t at_ms) {
    timeouts.NoteProgress(kStart + at_ms);
    return timeouts.Check(kStart + at_ms,
                          {.activity = Activity::kBody, .body_bytes = bytes, .is_short = true});
  };
  EXPECT_EQ(Verdict::kGoOn, check(0));
  bytes += 4 * (64 << 10);
  EXPECT_EQ(Verdict::kGoOn, check(4000));
  bytes += 4 * (64 << 10) - 1;
  EXPECT_EQ(Verdict::kRefuseForOthers, check(8000));
}

TEST_F(TimeoutsTest, ABodyThatBringsNothingMakesRoomWhileMemoryIsShort) {
  const Timeouts::Situation stalled{.activity = Activity::kBody, .is_short = true};
  EXPECT_EQ(Verdict::kGoOn, After(2000, stalled));
  EXPECT_EQ(Verdict::kRefuseForOthers, After(2001, stalled));
  EXPECT_EQ(Verdict::kGoOn, After(2001, {.activity = Activity::kBody}));
}

TEST_F(TimeoutsTest, AReaderMustTakeEnoughOfAReplyInEveryWindow) {
  options.body_window = milliseconds(1000);
  options.min_read_bytes_per_s = 100;
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  uint64_t left = 5000;
  const auto check = [&](uint64_t at_ms) {
    timeouts.NoteProgress(kStart + at_ms);
    return timeouts.Check(kStart + at_ms, {.activity = Activity::kSending, .unsent_bytes = left});
  };
  EXPECT_EQ(Verdict::kGoOn, check(0));
  left -= 100;
  EXPECT_EQ(Verdict::kGoOn, check(1000));
  left -= 99;
  EXPECT_EQ(Verdict::kClose, check(2000));
}

TEST_F(TimeoutsTest, TheWindowOfAReplyDoesNotCountForTheNextBody) {
  options.body_window = milliseconds(1000);
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  const auto check = [&](Timeouts::Situation situation, uint64_t at_ms) {
    timeouts.NoteProgress(kStart + at_ms);
    return timeouts.Check(kStart + at_ms, situation);
  };
  EXPECT_EQ(Verdict::kGoOn, check({.activity = Activity::kSending, .unsent_bytes = 9000}, 0));
  EXPECT_EQ(Verdict::kGoOn, check({.activity = Activity::kBody, .body_bytes = 1}, 1500));
}

TEST_F(TimeoutsTest, ConnectionsEndATenthBeforeOrAfterTheirAge) {
  options.max_connection_age = milliseconds(1000);
  for (const auto& [jitter, age_ms] : {std::pair(0.0, 900u), {0.5, 1000u}, {1.0, 1100u}}) {
    Timeouts timeouts(options);
    timeouts.Begin(kStart, jitter);
    EXPECT_FALSE(timeouts.IsTooOld(kStart + age_ms - 1)) << jitter;
    EXPECT_TRUE(timeouts.IsTooOld(kStart + age_ms)) << jitter;
  }
  options.max_connection_age = milliseconds(0);
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  EXPECT_FALSE(timeouts.IsTooOld(UINT64_MAX));
}

TEST_F(TimeoutsTest, OldConnectionsAndThoseThatOthersNeedEndWhenTheyAreQuiet) {
  EXPECT_EQ(Verdict::kGoOn, After(2000, {.is_crowded = true}));
  EXPECT_EQ(Verdict::kClose, After(2001, {.is_crowded = true}));
  EXPECT_EQ(Verdict::kGoOn, After(2001, {}));
  Timeouts timeouts(options);
  timeouts.Begin(kStart, 0);
  timeouts.ExpireNow();
  EXPECT_TRUE(timeouts.IsTooOld(kStart));
  EXPECT_EQ(Verdict::kGoOn, timeouts.Check(kStart + 2000, {}));
  EXPECT_EQ(Verdict::kClose, timeouts.Check(kStart + 2001, {}));
}

}  // namespace
}  // namespace nereid::http1
