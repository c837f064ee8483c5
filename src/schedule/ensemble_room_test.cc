// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_room.h"

#include <array>

#include <gtest/gtest.h>

#include "base/thread.h"
#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

class EnsembleRoomTest : public testing::Test {
 protected:
  EnsembleRoomTest() { room_.Reset(3); }

  static constexpr std::array<uint32_t, 1> kBehind{1};

  // Returns whether a producer may continue at once.
  bool HasRoom() { return room_.Wait(producer_, kBehind, *request_, base::TimePoint()); }

  core::FakeSink sink_;
  core::RequestPtr request_ = core::Request::Create(sink_);
  EnsembleRoom room_;
  EnsembleRoom::Producer producer_;
};

TEST_F(EnsembleRoomTest, HasRoomWhenNothingWaits) { EXPECT_TRUE(HasRoom()); }

TEST_F(EnsembleRoomTest, HasNoneUntilTheProducersResponsesHaveBeenHandled) {
  room_.NoteResponse(producer_);
  room_.NoteResponse(producer_);
  room_.NoteHandled(producer_);
  EXPECT_FALSE(HasRoom());
  room_.NoteHandled(producer_);
  EXPECT_TRUE(HasRoom());
}

TEST_F(EnsembleRoomTest, HasNoneWhileCallsWaitForAPlace) {
  room_.NoteHeld(1);
  EXPECT_FALSE(HasRoom());
  room_.NotePlaced(1);
  EXPECT_TRUE(HasRoom());
}

TEST_F(EnsembleRoomTest, HasSomeWhileCallsOfStepsThatAreNotBehindWaitForAPlace) {
  room_.NoteHeld(0);
  room_.NoteHeld(2);
  EXPECT_TRUE(HasRoom());
  room_.NoteHeld(1);
  EXPECT_FALSE(HasRoom());
  room_.NotePlaced(1);
  EXPECT_TRUE(HasRoom());
}

TEST_F(EnsembleRoomTest, BlocksNoProducerWhoseRequestHasFailedOrWasCancelled) {
  room_.NoteHeld(1);
  room_.NoteFailed();
  EXPECT_TRUE(HasRoom());
  room_.Reset(3);
  room_.NoteHeld(1);
  EXPECT_FALSE(HasRoom());
  request_->Cancel();
  EXPECT_TRUE(HasRoom());
}

TEST_F(EnsembleRoomTest, WakesAProducerWhenThereIsRoom) {
  room_.NoteResponse(producer_);
  room_.NoteHeld(1);
  bool had_room = false;
  base::Thread producer("producer", [&] {
    had_room = room_.Wait(producer_, kBehind, *request_, base::TimePoint::max());
  });
  room_.NoteHandled(producer_);
  room_.NotePlaced(1);
  producer.Join();
  EXPECT_TRUE(had_room);
}

}  // namespace
}  // namespace nereid::schedule
