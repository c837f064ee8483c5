// SPDX-License-Identifier: Apache-2.0
#include "http1/stream_writer.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

using Cause = StreamWriter::Cause;
using Next = StreamWriter::Next;
using Step = StreamWriter::Step;

constexpr uint64_t kOnReactor = 0;
constexpr uint64_t kSlow = 1'000'000;  // long after the chunk before

// A socket that takes as many bytes as it has room for, and a thread that executes steps.
struct StreamWriterTest : testing::Test {
  Step Run(Step step) {
    while (step.next == Next::kSend) {
      const std::string_view text = stream.sending();
      const size_t count = std::min(text.size(), room);
      taken += text.substr(0, count);
      room -= count;
      ++sends;
      step = stream.Sent(is_broken ? -1 : static_cast<ssize_t>(count));
    }
    return step;
  }
  Step Write(std::string_view chunk) { return Run(stream.Write(chunk, now_ns += kSlow)); }

  StreamWriter stream{StreamFraming::kChunks, false, 100};
  size_t room = SIZE_MAX;
  bool is_broken = false;
  std::string taken;
  int sends = 0;
  uint64_t now_ns = kSlow;
};

TEST_F(StreamWriterTest, SendsEachChunkAtOnce) {
  Step step = Run(stream.Begin("head;", "0123456789abcdef"));
  EXPECT_EQ("head;10\r\n0123456789abcdef\r\n", taken);
  EXPECT_EQ(Next::kNothing, step.next);
  EXPECT_TRUE(step.has_room);
  EXPECT_FALSE(step.is_over);
  taken.clear();
  Write("abc");
  EXPECT_EQ("3\r\nabc\r\n", taken);
  taken.clear();
  step = Run(stream.End("d"));
  EXPECT_EQ("1\r\nd\r\n0\r\n\r\n", taken);
  EXPECT_TRUE(step.is_over);
  EXPECT_EQ(3, sends);
}

TEST_F(StreamWriterTest, AnEmptyChunkIsNotTheLastOne) {
  Run(stream.Begin("head;", ""));
  Write("");
  EXPECT_EQ("head;", taken);
}

TEST(StreamWriter, ToAnOldClientHasNoFraming) {
  StreamWriter stream(StreamFraming::kUntilClose, false, 100);
  EXPECT_EQ(Next::kSend, stream.Begin("head;", "abc").next);
  EXPECT_EQ("head;abc", stream.sending());
  EXPECT_TRUE(stream.Sent(8).has_room);
  EXPECT_EQ(Next::kSend, stream.End("d").next);
  EXPECT_EQ("d", stream.sending());
  EXPECT_TRUE(stream.Sent(1).is_over);
}

TEST(StreamWriter, ToAHeadRequestHasNoBody) {
  StreamWriter stream(StreamFraming::kChunks, true, 100);
  EXPECT_EQ(Next::kSend, stream.Begin("head;", "abc").next);
  EXPECT_EQ("head;", stream.sending());
  EXPECT_FALSE(stream.Sent(5).is_over);
  EXPECT_EQ(Next::kNothing, stream.Write("abc", kSlow).next);
  EXPECT_TRUE(stream.End("d").is_over);
}

TEST_F(StreamWriterTest, WhatTheSocketDoesNotTakeIsTheReactorsToSendInOrder) {
  room = 7;
  EXPECT_EQ(Next::kPost, Run(stream.Begin("head;", "abc")).next);
  EXPECT_EQ(Next::kWait, Run(stream.TakeTurn(Cause::kTask)).next);
  EXPECT_EQ(Next::kNothing, Write("def").next);  // the reactor has been posted
  room = 3;
  EXPECT_EQ(Next::kWait, Run(stream.TakeTurn(Cause::kRoom)).next);
  room = SIZE_MAX;
  EXPECT_EQ(Next::kNothing, Run(stream.TakeTurn(Cause::kRoom)).next);
  EXPECT_EQ("head;3\r\nabc\r\n3\r\ndef\r\n", taken);
}

TEST_F(StreamWriterTest, AWriterPausesWhileTooMuchWaitsAndIsNotifiedOnceWhenItMayContinue) {
  room = 5;
  EXPECT_TRUE(Run(stream.Begin("head;", "")).has_room);
  EXPECT_TRUE(Write(std::string(50, 'x')).has_room);
  EXPECT_FALSE(Write(std::string(50, 'x')).has_room);
  room = 20;
  EXPECT_FALSE(Run(stream.TakeTurn(Cause::kTask)).has_resumed);
  room = SIZE_MAX;
  EXPECT_TRUE(Run(stream.TakeTurn(Cause::kRoom)).has_resumed);
  EXPECT_TRUE(Write("abc").has_room);
  room = 0;
  EXPECT_TRUE(Write("abc").has_room);
  room = SIZE_MAX;
  EXPECT_FALSE(Run(stream.TakeTurn(Cause::kTask)).has_resumed);  // the writer was not paused
}

TEST_F(StreamWriterTest, WhoPausesIsNotifiedThoughALaterChunkHasFoundRoom) {
  room = 5;
  Run(stream.Begin("head;", ""));
  EXPECT_FALSE(Write(std::string(150, 'x')).has_room);
  room = 100;
  EXPECT_FALSE(Run(stream.TakeTurn(Cause::kTask)).has_resumed);
  EXPECT_TRUE(Write("abc").has_room);  // of another thread, which does not pause
  room = SIZE_MAX;
  EXPECT_TRUE(Run(stream.TakeTurn(Cause::kRoom)).has_resumed);
}

TEST_F(StreamWriterTest, WhoPausesIsNotifiedThoughTheWriterHasSentEverythingItself) {
  room = 5;
  Run(stream.Begin("head;", ""));
  EXPECT_FALSE(Write(std::string(150, 'x')).has_room);
  const Step begun = stream.Write("abc", now_ns += kSlow);
  ASSERT_EQ(Next::kSend, begun.next);
  EXPECT_FALSE(Run(stream.TakeTurn(Cause::kTask)).has_resumed);  // the writer is sending
  room = SIZE_MAX;
  const Step step = Run(begun);
  EXPECT_TRUE(step.has_room);
  ASSERT_EQ(Next::kPost, step.next);
  EXPECT_TRUE(Run(stream.TakeTurn(Cause::kTask)).has_resumed);
  EXPECT_EQ(Next::kNothing, Write("def").next);
}

TEST_F(StreamWriterTest, ChunksThatComeFasterThanTheyCanBeSentAreLeftToTheReactor) {
  Run(stream.Begin("", ""));
  int posts = 0;
  for (int i = 0; i < 8; ++i) {
    if (Run(stream.Write("abc", now_ns += 1000)).next == Next::kPost) ++posts;
  }
  EXPECT_EQ(1, posts);
  const int by_writer = sends;
  EXPECT_LT(by_writer, 8);
  EXPECT_EQ(Next::kNothing, Run(stream.TakeTurn(Cause::kTask)).next);
  EXPECT_EQ(by_writer + 1, sends);
  std::string expected;
  for (int i = 0; i < 8; ++i) expected += "3\r\nabc\r\n";
  EXPECT_EQ(expected, taken);
}

TEST_F(StreamWriterTest, AWriterOnTheReactorLeavesNothing) {
  Run(stream.Begin("", ""));
  for (int i = 0; i < 8; ++i) EXPECT_NE(Next::kPost, Run(stream.Write("abc", kOnReactor)).next);
  EXPECT_EQ(8, sends);
}

TEST_F(StreamWriterTest, TheWriterTakesWhatComesDuringTheReactorsTurnForSent) {
  room = 5;
  Run(stream.Begin("head;", "abc"));
  ASSERT_EQ(Next::kSend, stream.TakeTurn(Cause::kTask).next);
  EXPECT_EQ("3\r\nabc\r\n", stream.sending());
  // The reactor is sending, and the writer does not wait for it.
  EXPECT_EQ(Next::kNothing, stream.Write("def", now_ns += kSlow).next);
  ASSERT_EQ(Next::kSend, stream.Sent(8).next);
  EXPECT_EQ("3\r\ndef\r\n", stream.sending());
  EXPECT_EQ(Next::kNothing, stream.Sent(8).next);
}

TEST_F(StreamWriterTest, TheReactorLeavesTheWriterItsTurn) {
  for (int i = 0; i < 3; ++i) Run(stream.Write("a", now_ns += 1000));
  ASSERT_EQ(Next::kPost, stream.Write("b", now_ns += 1000).next);
  ASSERT_EQ(Next::kSend, stream.Write("c", now_ns += kSlow).next);
  EXPECT_EQ(Next::kNothing, stream.TakeTurn(Cause::kTask).next);
  // What the writer cannot send is left to the reactor again.
  EXPECT_EQ(Next::kPost, stream.Sent(0).next);
}

TEST_F(StreamWriterTest, ATurnHasAnEndHoweverMuchComes) {
  room = 0;
  Run(stream.Begin("head;", ""));
  Step step = stream.TakeTurn(Cause::kTask);
  int turns = 0;
  while (step.next == Next::kSend && turns < 100) {
    stream.Write("abc", now_ns += kSlow);
    step = stream.Sent(static_cast<ssize_t>(stream.sending().size()));
    ++turns;
  }
  EXPECT_EQ(16, turns);
  EXPECT_EQ(Next::kPost, step.next);
}

TEST_F(StreamWriterTest, IsNotOverWhileTheReactorsTaskIsInTheQueue) {
  for (int i = 0; i < 4; ++i) Run(stream.Write("a", now_ns += 1000));
  EXPECT_FALSE(Run(stream.End("")).is_over);
  // A turn because of the end must not send before the task: the task would run after the stream is
  // gone, and could be posted a second time before.
  Step step = stream.TakeTurn(Cause::kEnd);
  EXPECT_EQ(Next::kNothing, step.next);
  EXPECT_FALSE(step.is_over);
  step = Run(stream.TakeTurn(Cause::kTask));
  EXPECT_TRUE(step.is_over);
}

TEST_F(StreamWriterTest, TheReactorSendsTheEndThatTheSocketDidNotTake) {
  room = 5;
  Run(stream.Begin("head;", ""));
  EXPECT_EQ(Next::kPost, Run(stream.End("abc")).next);
  EXPECT_EQ(Next::kWait, Run(stream.TakeTurn(Cause::kTask)).next);
  EXPECT_FALSE(Run(stream.TakeTurn(Cause::kEnd)).is_over);
  room = SIZE_MAX;
  EXPECT_TRUE(Run(stream.TakeTurn(Cause::kRoom)).is_over);
  EXPECT_EQ("head;3\r\nabc\r\n0\r\n\r\n", taken);
}

TEST_F(StreamWriterTest, RoomInTheSocketIsOfNoInterestToAStreamThatDoesNotWait) {
  Run(stream.Begin("head;", ""));
  EXPECT_EQ(Next::kNothing, stream.TakeTurn(Cause::kRoom).next);
}

TEST_F(StreamWriterTest, ChunksForAClientThatIsGoneAreThrownAway) {
  Run(stream.Begin("head;", ""));
  is_broken = true;
  Step step = Write("abc");
  EXPECT_TRUE(step.is_broken);
  EXPECT_TRUE(step.has_room);
  const int before = sends;
  step = Write(std::string(1000, 'x'));
  EXPECT_TRUE(step.has_room);
  EXPECT_EQ(before, sends);
  step = Run(stream.End("d"));
  EXPECT_TRUE(step.is_over);
  EXPECT_TRUE(step.is_broken);
}

TEST_F(StreamWriterTest, AStreamThatIsCutShortHasNoEnd) {
  room = 5;
  Run(stream.Begin("head;", "abc"));
  EXPECT_EQ(Next::kWait, Run(stream.TakeTurn(Cause::kTask)).next);
  stream.Cut();
  room = SIZE_MAX;
  const Step step = Run(stream.TakeTurn(Cause::kEnd));
  EXPECT_TRUE(step.is_over);
  EXPECT_TRUE(step.is_broken);
  EXPECT_EQ("head;", taken);
}

TEST_F(StreamWriterTest, TwoThreadsSendEveryByteOnceAndInOrder) {
  constexpr int kChunks = 2000;
  std::atomic<int> posts{0};
  std::atomic<bool> has_ended{false};
  bool is_over = false;
  // One socket for both, which only the thread that has the turn touches.
  const auto run = [&](Step step) {
    while (step.next == Next::kSend) {
      const size_t count = std::min<size_t>(stream.sending().size(), 40);
      taken += stream.sending().substr(0, count);
      step = stream.Sent(static_cast<ssize_t>(count));
    }
    if (step.next == Next::kPost) ++posts;
    return step;
  };
  std::thread reactor([&] {
    bool is_waiting = false;
    bool has_taken_end = false;
    while (!is_over) {
      Step step;
      if (posts.load() > 0) {
        --posts;
        step = run(stream.TakeTurn(Cause::kTask));
      } else if (is_waiting) {
        step = run(stream.TakeTurn(Cause::kRoom));
      } else if (has_ended && !has_taken_end) {
        has_taken_end = true;
        step = run(stream.TakeTurn(Cause::kEnd));
      } else {
        std::this_thread::yield();
        continue;
      }
      is_waiting = step.next == Next::kWait;
      is_over = has_ended && step.is_over;
    }
  });
  std::string expected = "head;";
  run(stream.Begin("head;", ""));
  for (int i = 0; i < kChunks; ++i) {
    const std::string chunk = std::to_string(i);
    run(stream.Write(chunk, now_ns += i % 100 < 50 ? 1000 : kSlow));
    expected += std::to_string(chunk.size()) + "\r\n" + chunk + "\r\n";
  }
  run(stream.End(""));
  has_ended = true;
  reactor.join();
  EXPECT_EQ(expected + "0\r\n\r\n", taken);
}

}  // namespace
}  // namespace nereid::http1
