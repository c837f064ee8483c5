// SPDX-License-Identifier: Apache-2.0
#include "python_backend/vitals.h"

#include <gtest/gtest.h>

#include <future>

#include "python_backend/testing/fake_worker.h"
#include "python_backend/wait.h"

namespace nereid::python {
namespace {

using Clock = Vitals::Clock;

class VitalsTest : public testing::Test {
 protected:
  FakeWorker worker_;
  int kills_ = 0;
  Vitals vitals_{"m_0", worker_.control(), [this] { ++kills_; }};
};

TEST_F(VitalsTest, AWorkerLivesUntilItsProcessEnds) {
  EXPECT_TRUE(vitals_.is_alive());
  vitals_.NoteExit("it exited with status 3");
  EXPECT_FALSE(vitals_.is_alive());
  EXPECT_EQ(vitals_.DeathMessage(), "Stub process 'm_0' is not healthy: it exited with status 3");
  EXPECT_EQ(kills_, 0);
}

TEST_F(VitalsTest, ACondemnedWorkerIsKilledAndDiesOfThatReason) {
  vitals_.Condemn("it sent nonsense");
  EXPECT_FALSE(vitals_.is_alive());
  EXPECT_EQ(kills_, 1);
  vitals_.NoteExit("it was killed by signal 9 (Killed)");
  EXPECT_EQ(vitals_.DeathMessage(), "Stub process 'm_0' is not healthy: it sent nonsense");
}

TEST_F(VitalsTest, OnlyTheFirstReasonCounts) {
  vitals_.Condemn("it sent nonsense");
  vitals_.Condemn("it sent more nonsense");
  EXPECT_EQ(kills_, 1);
  EXPECT_EQ(vitals_.DeathMessage(), "Stub process 'm_0' is not healthy: it sent nonsense");
}

TEST_F(VitalsTest, AProcessThatHasEndedIsNotKilled) {
  vitals_.NoteExit("it exited with status 0");
  vitals_.Condemn("it sent nonsense");
  EXPECT_EQ(kills_, 0);
  EXPECT_EQ(vitals_.DeathMessage(), "Stub process 'm_0' is not healthy: it exited with status 0");
}

TEST_F(VitalsTest, MessagesNameTheWorkerAsItIsCalledNow) {
  vitals_.Rename("m_1");
  EXPECT_EQ(vitals_.label(), "Stub process 'm_1'");
  vitals_.NoteExit("it ended");
  EXPECT_EQ(vitals_.DeathMessage(), "Stub process 'm_1' is not healthy: it ended");
}

TEST_F(VitalsTest, WaitingForTheExitEndsAtTheDeadlineOfAWorkerThatLives) {
  EXPECT_FALSE(vitals_.WaitForExit(Clock::now()));
  vitals_.Condemn("it sent nonsense");
  // The process is killed, but its end was not noticed yet.
  EXPECT_FALSE(vitals_.WaitForExit(Clock::now()));
  vitals_.NoteExit("it was killed");
  EXPECT_TRUE(vitals_.WaitForExit(Clock::now()));
  vitals_.WaitForExit();
}

TEST_F(VitalsTest, TheExitWakesThreadsThatWaitForIt) {
  auto waits = std::async(std::launch::async, [this] { vitals_.WaitForExit(); });
  vitals_.NoteExit("it ended");
  waits.get();
}

// A worker may overwrite the flag that says whether a thread of the server sleeps.
TEST_F(VitalsTest, ADeathWakesThreadsThatWaitForTheWorkerWhateverItsFlagsSay) {
  Control& control = worker_.control();
  for (Word* const word : {&control.done.word, &control.reply.word, &control.ring_bell}) {
    const uint32_t before = word->load();
    Word flag{0};
    auto waits = std::async(std::launch::async, [&] {
      while (WaitWhile(*word, flag, before, std::chrono::nanoseconds(0)) == before) {
      }
    });
    Vitals vitals("m_0", control, [] {});
    vitals.Condemn("it hangs");
    waits.get();
    EXPECT_NE(word->load(), before);
  }
}

}  // namespace
}  // namespace nereid::python
