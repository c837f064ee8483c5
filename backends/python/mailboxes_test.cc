// SPDX-License-Identifier: Apache-2.0
#include "python_backend/mailboxes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "backend_kit/testing/fake_host.h"
#include "python_backend/decode.h"
#include "python_backend/testing/fake_worker.h"
#include "python_backend/wait.h"

namespace nereid::python {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

class MailboxesTest : public testing::Test {
 protected:
  MailboxesTest() : control_(worker_.control()) {}

  // Plays the worker: reports how its last work ended.
  void Finish(Outcome outcome, std::string_view text) {
    const uint64_t block = worker_.Put(text);
    FakeWorker::Finish(control_.done, control_.work.word.load(), outcome, block, text.size());
  }
  void Reply(Outcome outcome, std::string_view text) {
    const uint64_t block = worker_.Put(text);
    FakeWorker::Finish(control_.reply, control_.question.word.load(), outcome, block, text.size());
  }
  // Returns the payload of the work.
  std::string Given() { return {worker_.region().At(control_.work.offset), control_.work.size}; }
  // Plays a worker that finishes the next work with what `say` returns for its payload.
  template <typename Say>
  std::future<void> WorkOnce(Say say) {
    return std::async(std::launch::async, [this, say, before = control_.work.word.load()] {
      while (WaitWhile(control_.work.word, control_.work.sleeping, before, nanoseconds(0)) ==
             before) {
      }
      Finish(Outcome::kOk, say(Given()));
      Signal(control_.done.word, control_.done.sleeping);
    });
  }
  static std::string TextOf(const WorkResult& result) {
    return {result.payload.data(), result.payload.size()};
  }

  FakeWorker worker_;
  Control& control_;
  int kills_ = 0;
  Vitals vitals_{"m_0", control_, [this] { ++kills_; }};
  CallRing ring_{worker_.region()};
  BlockPool blocks_{worker_.region(),
                    {.begin = kBlocksBegin, .end = worker_.region().inputs_begin()}};
  WorkLine work_{worker_.region(), vitals_, blocks_, ring_};
  QuestionLine questions_{worker_.region(), vitals_};
};

TEST_F(MailboxesTest, TextGoesToTheWorkerAndItsTextComesBack) {
  auto worker = WorkOnce([](const std::string& text) { return "<" + text + ">"; });
  auto result = work_.RunText(Work::kComplete, "a configuration");
  worker.get();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), "<a configuration>");
  EXPECT_EQ(control_.work.kind, static_cast<uint32_t>(Work::kComplete));
}

TEST_F(MailboxesTest, AFailureOfTheWorkerIsAnErrorWithItsText) {
  work_.Begin(Work::kInitialize, {}, 0);
  EXPECT_EQ(control_.work.offset, 0u);
  Finish(Outcome::kError, "ValueError: no");
  auto result = work_.Wait();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().outcome, Outcome::kError);
  EXPECT_EQ(TextOf(result.value()), "ValueError: no");
}

TEST_F(MailboxesTest, AResultIsTheWorkersAgainWhenItIsGone) {
  work_.Begin(Work::kExecute, {}, 0);
  Finish(Outcome::kOk, "tensors");
  const BlockHeader& header = worker_.Header(control_.done.offset);
  {
    auto result = work_.Wait();
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(header.state.load(), kBlockInUse);
    const WorkResult kept = std::move(result).value();
    EXPECT_EQ(header.state.load(), kBlockInUse);
  }
  EXPECT_EQ(header.state.load(), kBlockFree);
}

TEST_F(MailboxesTest, AnEmptyResultHasNoBlock) {
  work_.Begin(Work::kFinalize, {}, 0);
  FakeWorker::Finish(control_.done, control_.work.word.load(), Outcome::kOk, 0, 0);
  auto result = work_.Wait();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().block, nullptr);
  EXPECT_TRUE(result.value().payload.empty());
}

TEST_F(MailboxesTest, LookingFindsNothingUntilTheWorkIsDone) {
  work_.Begin(Work::kExecute, {}, 0);
  EXPECT_FALSE(work_.Look(nanoseconds(0)).has_value());
  Finish(Outcome::kOk, "tensors");
  auto result = work_.Look(nanoseconds(0));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(TextOf(*result), "tensors");
}

// Calls that the worker made during an execution are handled before the execution ends.
TEST_F(MailboxesTest, LookingFindsNothingWhileACallIsOpen) {
  work_.Begin(Work::kExecute, {}, 0);
  worker_.MakeCall(Call::kLog, "x");
  Finish(Outcome::kOk, "tensors");
  EXPECT_FALSE(work_.Look(nanoseconds(0)).has_value());
  ASSERT_TRUE(ring_.Take().ok());
  ring_.NoteHandled();
  EXPECT_TRUE(work_.Look(nanoseconds(0)).has_value());
}

TEST_F(MailboxesTest, WorkThatTakesTooLongIsAnErrorAndItsLateResultIsPassedOver) {
  auto late = work_.Run(Work::kInitialize, {}, 0, Clock::now());
  ASSERT_FALSE(late.ok());
  const backend::Error error = late.TakeError();
  EXPECT_EQ(error.code(), TRITONSERVER_ERROR_UNAVAILABLE);
  EXPECT_STREQ(error.message(), "Stub process 'm_0' did not respond in time");
  const uint32_t old = control_.work.word.load();
  work_.Begin(Work::kExecute, {}, 0);
  FakeWorker::Finish(control_.done, old, Outcome::kError, worker_.Put("late"), 4);
  EXPECT_FALSE(work_.Look(nanoseconds(0)).has_value());
  Finish(Outcome::kOk, "tensors");
  auto result = work_.Wait();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(TextOf(result.value()), "tensors");
}

TEST_F(MailboxesTest, ADeathEndsTheWait) {
  work_.Begin(Work::kExecute, {}, 0);
  auto waits = std::async(std::launch::async, [this] { return work_.Wait(); });
  vitals_.NoteExit("it was killed by signal 9 (Killed)");
  auto result = waits.get();
  ASSERT_FALSE(result.ok());
  EXPECT_STREQ(result.TakeError().message(),
               "Stub process 'm_0' is not healthy: it was killed by signal 9 (Killed)");
  EXPECT_FALSE(work_.Look(nanoseconds(0)).has_value());
}

TEST_F(MailboxesTest, ResultsThatAreNotInTheRegionEndTheWorker) {
  const uint64_t size = worker_.region().size();
  const uint64_t block = worker_.Put("x");
  const std::pair<uint64_t, uint64_t> places[] = {
      {64, 1},       {block + 1, 1},      {size, 0},           {size - 64, 1},
      {block, size}, {block, UINT64_MAX}, {UINT64_MAX - 63, 1}};
  for (const auto& [offset, length] : places) {
    int kills = 0;
    Vitals vitals("m_0", control_, [&kills] { ++kills; });
    WorkLine work(worker_.region(), vitals, blocks_, ring_);
    work.Begin(Work::kExecute, {}, 0);
    FakeWorker::Finish(control_.done, control_.work.word.load(), Outcome::kOk, offset, length);
    auto result = work.Wait();
    ASSERT_FALSE(result.ok()) << offset;
    EXPECT_STREQ(
        result.TakeError().message(),
        "Stub process 'm_0' is not healthy: it corrupted the memory shared with the server");
    EXPECT_EQ(kills, 1);
    EXPECT_FALSE(vitals.is_alive());
  }
}

TEST_F(MailboxesTest, ATextBeyondTheLimitIsAnError) {
  auto worker = WorkOnce([](const std::string&) { return std::string(kMaxText + 1, 'x'); });
  auto result = work_.RunText(Work::kComplete, "");
  worker.get();
  ASSERT_FALSE(result.ok());
  EXPECT_STREQ(result.TakeError().message(), "a worker's text is longer than 16777216 bytes");
}

TEST_F(MailboxesTest, AQuestionGetsItsReplyDuringOtherWork) {
  work_.Begin(Work::kExecute, {}, 0);
  auto asks = std::async(std::launch::async, [this] {
    return questions_.Ask(Work::kAskReady, Clock::time_point::max());
  });
  while (WaitWhile(control_.question.word, control_.question.sleeping, 0, nanoseconds(0)) == 0) {
  }
  Reply(Outcome::kOk, "yes");
  Signal(control_.reply.word, control_.reply.sleeping);
  auto answer = asks.get();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value(), "yes");
  EXPECT_FALSE(work_.Look(nanoseconds(0)).has_value());
}

TEST_F(MailboxesTest, AQuestionIsNotAskedAgainWhileItIsOpen) {
  auto first = questions_.Ask(Work::kAskReady, Clock::now());
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.TakeError().code(), TRITONSERVER_ERROR_UNAVAILABLE);
  const uint32_t asked = control_.question.word.load();
  auto second = questions_.Ask(Work::kAskReady, Clock::now());
  EXPECT_FALSE(second.ok());
  EXPECT_EQ(control_.question.word.load(), asked);
}

// A model that was busy may have become ready since.
TEST_F(MailboxesTest, ALateReplyIsIgnoredAndTheQuestionIsAskedAgain) {
  ASSERT_FALSE(questions_.Ask(Work::kAskReady, Clock::now()).ok());
  Reply(Outcome::kOk, "no");
  const BlockHeader& old = worker_.Header(control_.reply.offset);
  const uint32_t asked = control_.question.word.load();
  ASSERT_FALSE(questions_.Ask(Work::kAskReady, Clock::now()).ok());
  EXPECT_EQ(control_.question.word.load(), asked + 1);
  EXPECT_EQ(old.state.load(), kBlockFree);
}

TEST_F(MailboxesTest, AQuestionThatFailsIsAnErrorWithATextOfBoundedLength) {
  ASSERT_FALSE(questions_.Ask(Work::kAskReady, Clock::now()).ok());
  auto asks = std::async(std::launch::async, [this] {
    return questions_.Ask(Work::kAskReady, Clock::time_point::max());
  });
  // The thread either sleeps on the open question before the reply arrives, or finds an old reply.
  while (control_.reply.sleeping.load() == 0) std::this_thread::yield();
  Reply(Outcome::kError, std::string(kMaxMessage + 5, 'x'));
  Signal(control_.reply.word, control_.reply.sleeping);
  auto answer = asks.get();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(std::string(answer.TakeError().message()).size(), kMaxMessage);
}

}  // namespace
}  // namespace nereid::python
