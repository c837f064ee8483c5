// SPDX-License-Identifier: Apache-2.0
#include "http1/reply_handover.h"

#include <latch>
#include <thread>

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

TEST(ReplyHandover, NoNoticeIsWantedUnlessItWasRequested) {
  ReplyHandover handover;
  handover.Begin();
  EXPECT_FALSE(handover.is_replied());
  EXPECT_FALSE(handover.MarkReplied());
  EXPECT_TRUE(handover.is_replied());
}

TEST(ReplyHandover, ARequestBeforeTheReplyGetsANotice) {
  ReplyHandover handover;
  handover.Begin();
  EXPECT_TRUE(handover.RequestNotice());
  EXPECT_TRUE(handover.RequestNotice());
  EXPECT_TRUE(handover.is_notice_requested());
  EXPECT_TRUE(handover.MarkReplied());
}

TEST(ReplyHandover, ARequestAfterTheReplyGetsNone) {
  ReplyHandover handover;
  handover.Begin();
  EXPECT_FALSE(handover.MarkReplied());
  EXPECT_FALSE(handover.RequestNotice());
  EXPECT_FALSE(handover.is_notice_requested());
}

TEST(ReplyHandover, TheNextExchangeBeginsWithoutARequest) {
  ReplyHandover handover;
  handover.Begin();
  EXPECT_TRUE(handover.RequestNotice());
  handover.End();
  handover.Begin();
  EXPECT_FALSE(handover.is_notice_requested());
  EXPECT_FALSE(handover.MarkReplied());
}

TEST(ReplyHandover, EitherTheThreadGivesNoticeOrTheReactorSeesTheReply) {
  for (int round = 0; round < 500; ++round) {
    ReplyHandover handover;
    handover.Begin();
    int reply = 0;
    bool is_notice_due = false;
    std::latch both(2);
    std::thread other([&] {
      both.arrive_and_wait();
      reply = 1;
      is_notice_due = handover.MarkReplied();
    });
    both.arrive_and_wait();
    const bool is_notice_coming = handover.RequestNotice();
    if (!is_notice_coming) {
      EXPECT_EQ(1, reply);
    }
    other.join();
    ASSERT_EQ(is_notice_coming, is_notice_due);
  }
}

}  // namespace
}  // namespace nereid::http1
