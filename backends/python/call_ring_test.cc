// SPDX-License-Identifier: Apache-2.0
#include "python_backend/call_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "backend_kit/testing/fake_host.h"
#include "python_backend/testing/fake_worker.h"
#include "python_backend/vitals.h"
#include "python_backend/wait.h"

namespace nereid::python {
namespace {

using Clock = CallRing::Clock;

class CallRingTest : public testing::Test {
 protected:
  // Returns the payload of the next call, "nothing" if there is none, or the text of an error.
  std::string Take() {
    auto call = ring_.Take();
    if (!call.ok()) return call.TakeError().message();
    if (!call.value()) return "nothing";
    return {call.value()->payload.data(), call.value()->payload.size()};
  }

  FakeWorker worker_;
  CallRing ring_{worker_.region()};
};

TEST_F(CallRingTest, GivesCallsInTheOrderInWhichTheyWereMade) {
  EXPECT_EQ(Take(), "nothing");
  const uint64_t first = worker_.MakeCall(Call::kLog, "one");
  worker_.MakeCall(Call::kClose, "two");
  auto call = ring_.Take();
  ASSERT_TRUE(call.ok() && call.value());
  EXPECT_EQ(call.value()->kind, Call::kLog);
  EXPECT_EQ(call.value()->header, &worker_.Header(first));
  EXPECT_EQ(std::string(call.value()->payload.data(), call.value()->payload.size()), "one");
  ring_.NoteHandled();
  EXPECT_EQ(Take(), "two");
  ring_.NoteHandled();
  EXPECT_EQ(Take(), "nothing");
}

// Compares the ring with a plain queue, over many turns of the ring.
TEST_F(CallRingTest, LosesNoCallHoweverMakingAndTakingAlternate) {
  std::mt19937 random(7);
  std::deque<uint64_t> model;
  std::vector<uint64_t> blocks;
  for (uint64_t i = 0; i < 64; ++i) blocks.push_back(worker_.Put(std::to_string(i)));
  for (int round = 0; round < 20000; ++round) {
    if (random() % 2 == 0 && model.size() < kRingCapacity) {
      const uint64_t block = blocks[random() % blocks.size()];
      worker_.Append(block);
      model.push_back(block);
    } else {
      auto call = ring_.Take();
      ASSERT_TRUE(call.ok());
      ASSERT_EQ(call.value().has_value(), !model.empty());
      if (model.empty()) continue;
      EXPECT_EQ(call.value()->header, &worker_.Header(model.front()));
      model.pop_front();
      ring_.NoteHandled();
    }
    ASSERT_EQ(ring_.HasOpenCalls(), !model.empty());
  }
}

TEST_F(CallRingTest, TakesAFullRing) {
  const uint64_t block = worker_.Put("x");
  for (uint64_t i = 0; i < kRingCapacity; ++i) worker_.Append(block);
  for (uint64_t i = 0; i < kRingCapacity; ++i) ASSERT_EQ(Take(), "x");
  EXPECT_EQ(Take(), "nothing");
}

TEST_F(CallRingTest, NotifiesAWorkerThatWaitsForAPlace) {
  worker_.MakeCall(Call::kLog, "x");
  Control& control = worker_.control();
  auto waits = std::async(std::launch::async, [&] {
    while (WaitWhile(control.ring_tail, control.ring_waiting, 0, std::chrono::nanoseconds(0)) ==
           0) {
    }
  });
  while (control.ring_waiting.load() == 0) std::this_thread::yield();
  EXPECT_EQ(Take(), "x");
  waits.get();
  EXPECT_EQ(control.ring_tail.load(), 1u);
}

TEST_F(CallRingTest, RefusesMoreCallsThanTheRingHas) {
  worker_.control().ring_head.store(static_cast<uint32_t>(kRingCapacity) + 1);
  EXPECT_EQ(Take(), kCorruption);
}

TEST_F(CallRingTest, RefusesBlocksThatAreNotInTheRegion) {
  const uint64_t size = worker_.region().size();
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{64}, kBlocksBegin - 64, size, size - 32, size + 64, UINT64_MAX,
        UINT64_MAX - 63, worker_.region().worker_begin() + 1}) {
    worker_.Append(offset);
    EXPECT_EQ(Take(), kCorruption) << offset;
  }
}

TEST_F(CallRingTest, RefusesPayloadsThatReachBeyondTheRegion) {
  const uint64_t block = worker_.Put("x");
  const uint64_t rest = worker_.region().size() - block - sizeof(BlockHeader);
  for (const uint64_t size : {rest + 1, rest + 64, UINT64_MAX, UINT64_MAX - block}) {
    worker_.Header(block).size = size;
    worker_.Append(block);
    EXPECT_EQ(Take(), kCorruption) << size;
  }
  worker_.Header(block).size = rest;
  worker_.Append(block);
  auto call = ring_.Take();
  ASSERT_TRUE(call.ok() && call.value());
  EXPECT_EQ(call.value()->payload.size(), rest);
}

TEST_F(CallRingTest, WaitingEndsWhenTheCallsMadeBeforeAreHandled) {
  ring_.WaitForCalls();
  worker_.MakeCall(Call::kLog, "one");
  worker_.MakeCall(Call::kLog, "two");
  auto waits = std::async(std::launch::async, [this] { ring_.WaitForCalls(); });
  EXPECT_EQ(Take(), "one");
  EXPECT_TRUE(ring_.HasOpenCalls());
  ring_.NoteHandled();
  EXPECT_TRUE(ring_.HasOpenCalls());
  EXPECT_EQ(Take(), "two");
  ring_.NoteHandled();
  EXPECT_FALSE(ring_.HasOpenCalls());
  waits.get();
}

TEST_F(CallRingTest, ClosingEndsEveryWait) {
  worker_.MakeCall(Call::kLog, "never handled");
  auto calls = std::async(std::launch::async, [this] { ring_.WaitForCalls(); });
  auto close = std::async(std::launch::async,
                          [this] { ring_.WaitForClose(Clock::now() + std::chrono::hours(1)); });
  ring_.Close();
  calls.get();
  close.get();
  ring_.WaitForCalls();
}

TEST_F(CallRingTest, WaitingForTheCloseEndsAtTheDeadline) { ring_.WaitForClose(Clock::now()); }

TEST_F(CallRingTest, TheBellRingsWithEveryCall) {
  const uint32_t before = ring_.bell();
  worker_.MakeCall(Call::kLog, "x");
  EXPECT_NE(ring_.bell(), before);
  ring_.WaitForBell(before);
}

TEST_F(CallRingTest, ARepliedCallHasItsOutcomeAndItsText) {
  BlockPool blocks(worker_.region(),
                   {.begin = kBlocksBegin, .end = worker_.region().inputs_begin()});
  const uint64_t call = worker_.MakeCall(Call::kIsCancelled, "x");
  BlockHeader& header = worker_.Header(call);
  Reply(blocks, &header, Outcome::kError, "no such request");
  EXPECT_EQ(header.state.load(), kBlockReplied);
  EXPECT_EQ(header.outcome, static_cast<uint32_t>(Outcome::kError));
  EXPECT_EQ(worker_.ReplyTo(call), "no such request");
  // The text belongs to the worker until the worker releases it.
  EXPECT_EQ(worker_.Header(header.reply_offset).state.load(), kBlockInUse);
  Reply(&header, Outcome::kOk);
  EXPECT_EQ(worker_.ReplyTo(call), "");
  Release(&header);
  EXPECT_EQ(header.state.load(), kBlockFree);
}

TEST_F(CallRingTest, ACallIsRepliedToWithoutTextWhereThereIsNoRoomForIt) {
  BlockPool none(worker_.region(), {.begin = kBlocksBegin, .end = kBlocksBegin});
  const uint64_t call = worker_.MakeCall(Call::kIsCancelled, "x");
  Reply(none, &worker_.Header(call), Outcome::kOk, "text");
  EXPECT_EQ(worker_.Header(call).outcome, static_cast<uint32_t>(Outcome::kError));
  EXPECT_EQ(worker_.ReplyTo(call), "");
}

}  // namespace
}  // namespace nereid::python
