// SPDX-License-Identifier: Apache-2.0
#include "http2/receive_room.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

TEST(ReceiveRoom, IsGivenBackAsBytesArrive) {
  ReceiveRoom room(100);
  EXPECT_EQ(room.Take(), 0u);
  room.NoteReceived(30);
  room.NoteReceived(12);
  EXPECT_EQ(room.Take(), 42u);
  EXPECT_EQ(room.Take(), 0u);
  EXPECT_FALSE(room.TakeHeldBack());
}

TEST(ReceiveRoom, IsHeldBackWhileMessagesInServiceExceedTheBudget) {
  ReceiveRoom room(100);
  size_t first = 0, second = 0;
  room.Hold(first, 60);
  room.Hold(second, 41);
  room.NoteReceived(101);
  EXPECT_EQ(room.Take(), 0u);
  EXPECT_TRUE(room.TakeHeldBack());
  EXPECT_TRUE(room.TakeHeldBack()) << "a silent client still has no window";
  room.Release(second, 1);
  EXPECT_EQ(room.Take(), 101u);
  EXPECT_TRUE(room.TakeHeldBack());
  EXPECT_FALSE(room.TakeHeldBack());
  EXPECT_EQ(first, 60u);
  EXPECT_EQ(second, 40u);
}

TEST(ReceiveRoom, AStreamGivesBackNoMoreThanItHas) {
  ReceiveRoom room(100);
  size_t first = 0, second = 0;
  room.Hold(first, 60);
  room.Hold(second, 60);
  room.Release(first, 1000);
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(second, 60u);
  EXPECT_FALSE(room.IsOverBudget(0));
  room.Hold(first, 41);
  EXPECT_TRUE(room.IsOverBudget(0));
  EXPECT_FALSE(room.IsOverBudget(1));
}

}  // namespace
}  // namespace nereid::http2
