// SPDX-License-Identifier: Apache-2.0
#include "http2/message_assembler.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "http2/testing/client.h"

namespace nereid::http2 {
namespace {

using State = MessageAssembler::State;

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

struct MessageAssemblerTest : testing::Test {
  void SetUp() override { assembler.Begin(connection, true); }
  size_t Take(std::string_view bytes) { return assembler.Take(Bytes(bytes), bytes.size()); }

  IncompleteMessages connection{1 << 20, 1 << 20};
  MessageAssembler assembler;
};

TEST_F(MessageAssemblerTest, FindsAMessageHoweverItsBytesAreCut) {
  const std::string framed = Prefixed("hello");
  for (size_t step = 1; step <= framed.size(); ++step) {
    std::string_view left = framed;
    while (!left.empty()) {
      EXPECT_EQ(assembler.state(), State::kIncomplete);
      const size_t taken = Take(left.substr(0, step));
      EXPECT_EQ(taken, std::min(step, left.size()));
      left.remove_prefix(taken);
    }
    ASSERT_EQ(assembler.state(), State::kComplete) << step;
    const MessageAssembler::Message message = assembler.TakeMessage();
    EXPECT_EQ(message.bytes, "hello");
    EXPECT_FALSE(message.is_compressed);
    EXPECT_FALSE(assembler.is_within_message());
  }
}

TEST_F(MessageAssemblerTest, TakesNoByteOfTheNextMessage) {
  const std::string framed = Prefixed("one") + Prefixed("", true) + Prefixed("three");
  std::string_view left = framed;
  std::vector<std::string> found;
  while (!left.empty()) {
    left.remove_prefix(Take(left));
    ASSERT_EQ(assembler.state(), State::kComplete);
    const MessageAssembler::Message message = assembler.TakeMessage();
    EXPECT_EQ(message.is_compressed, found.size() == 1);
    found.emplace_back(message.bytes);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"one", "", "three"}));
}

TEST_F(MessageAssemblerTest, TheEndOfAMessageIsAligned) {
  for (const size_t size : {1u, 63u, 64u, 1000u}) {
    Take(Prefixed(std::string(size, 'x')));
    const MessageAssembler::Message message = assembler.TakeMessage();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(message.bytes.data() + size) % 64, 0u) << size;
  }
}

TEST_F(MessageAssemblerTest, BytesThatLieInTheRoomAreNotCopied) {
  EXPECT_TRUE(assembler.Room().empty());
  Take(Prefixed("xxx0123456").substr(0, 8));
  const std::span<std::byte> room = assembler.Room();
  ASSERT_EQ(room.size(), 7u);
  std::memcpy(room.data(), "abcdefg", 7);
  EXPECT_EQ(assembler.Take(reinterpret_cast<const uint8_t*>(room.data()), 4), 4u);
  EXPECT_EQ(assembler.Room().data(), room.data() + 4);
  // Bytes that overlap their destination are moved.
  std::memcpy(room.data() + 3, "123", 3);
  EXPECT_EQ(assembler.Take(reinterpret_cast<const uint8_t*>(room.data() + 3), 3), 3u);
  EXPECT_EQ(assembler.TakeMessage().bytes, "xxxabc1123");
}

TEST_F(MessageAssemblerTest, RefusesInvalidMessages) {
  const struct {
    std::string prefix;
    bool may_be_compressed;
    GrpcStatus status;
    std::string text;
  } cases[] = {
      {{"\7\0\0\0\0", 5}, true, GrpcStatus::kInternal, "Invalid compression flag 7"},
      {{"\1\0\0\0\0", 5},
       false,
       GrpcStatus::kInternal,
       "A compressed message without a grpc-encoding"},
      {{"\0\0\x10\0\1", 5},
       true,
       GrpcStatus::kResourceExhausted,
       "Received message larger than max (1048577 vs. 1048576)"},
  };
  for (const auto& c : cases) {
    MessageAssembler refusing;
    refusing.Begin(connection, c.may_be_compressed);
    EXPECT_EQ(refusing.Take(Bytes(c.prefix), 5), 5u);
    ASSERT_EQ(refusing.state(), State::kRefused) << c.text;
    EXPECT_EQ(refusing.error().status, c.status);
    EXPECT_EQ(refusing.error().text, c.text);
    refusing.Drop();
    EXPECT_EQ(connection.count, 0u);
  }
}

TEST_F(MessageAssemblerTest, TheIncompleteMessagesOfAConnectionAreBoundedUnlessThereIsOnlyOne) {
  IncompleteMessages tight{1000, 100};
  MessageAssembler large, other;
  large.Begin(tight, false);
  other.Begin(tight, false);
  const std::string prefix = Prefixed(std::string(900, 'x')).substr(0, 5);
  large.Take(Bytes(prefix), 5);
  EXPECT_EQ(large.state(), State::kIncomplete);
  EXPECT_EQ(tight.bytes, 900u);
  other.Take(Bytes(Prefixed("y")), 5);
  EXPECT_EQ(other.state(), State::kRefused);
  EXPECT_EQ(other.error().text, "Too many large messages at once on this connection");
  large.Drop();
  EXPECT_EQ(tight.bytes, 0u);
  EXPECT_EQ(tight.count, 0u);
  other.Recycle();
  other.Begin(tight, false);
  other.Take(Bytes(prefix), 5);
  EXPECT_EQ(other.state(), State::kIncomplete);
  other.Drop();
}

TEST_F(MessageAssemblerTest, ADroppedMessageLeavesNothingBehind) {
  Take(Prefixed("some of it").substr(0, 9));
  EXPECT_TRUE(assembler.is_within_message());
  assembler.Drop();
  EXPECT_FALSE(assembler.is_within_message());
  Take(Prefixed("another"));
  EXPECT_EQ(assembler.TakeMessage().bytes, "another");
  EXPECT_EQ(connection.count, 0u);
}

TEST_F(MessageAssemblerTest, ProgressIsWhatCameBetweenTwoFairLooks) {
  EXPECT_EQ(assembler.Progress(true), std::nullopt);  // no message
  Take(Prefixed(std::string(100, 'x')).substr(0, 15));
  EXPECT_EQ(assembler.Progress(true), std::nullopt);  // it has begun since
  Take("0123456");
  EXPECT_EQ(assembler.Progress(true), 7u);
  Take("0123");
  EXPECT_EQ(assembler.Progress(false),
            std::nullopt);  // no window to send at the last call
  EXPECT_EQ(assembler.Progress(true), std::nullopt);
  EXPECT_EQ(assembler.Progress(true), 0u);
}

TEST_F(MessageAssemblerTest, CountsWhatHasArrivedAndNotWhatWasAnnounced) {
  base::Budget budget(size_t{1} << 20);
  IncompleteMessages counted{1 << 20, 1 << 20, &budget};
  MessageAssembler one;
  one.Begin(counted, false);
  const std::string framed = Prefixed(std::string(800 << 10, 'x'));
  one.Take(Bytes(framed), 6);
  EXPECT_EQ(budget.used(), 4096u);
  one.Drop();
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(MessageAssemblerTest, SmallMessagesThatArriveInOnePieceAreNotCounted) {
  base::Budget budget(0);
  IncompleteMessages counted{1 << 20, 1 << 20, &budget};
  MessageAssembler one;
  one.Begin(counted, false);
  const std::string empty = Prefixed("");
  one.Take(Bytes(empty), empty.size());
  EXPECT_EQ(one.state(), State::kComplete);
  one.TakeMessage();
  base::Budget enough(100);
  IncompleteMessages others{1 << 20, 1 << 20, &enough};
  MessageAssembler other;
  other.Begin(others, false);
  const std::string framed = Prefixed(std::string(100, 'x'));
  other.Take(Bytes(framed), framed.size());
  EXPECT_EQ(other.state(), State::kComplete);
  EXPECT_EQ(enough.used(), 0u);
  other.TakeMessage();
}

TEST_F(MessageAssemblerTest, MessagesBeyondTheBudgetAreRefused) {
  base::Budget budget(100 << 10);
  IncompleteMessages counted{1 << 20, 1 << 20, &budget};
  MessageAssembler one;
  one.Begin(counted, false);
  const std::string never = Prefixed(std::string(101 << 10, 'x'));
  one.Take(Bytes(never), never.size());
  EXPECT_EQ(one.state(), State::kRefused);
  EXPECT_EQ(one.error().status, GrpcStatus::kResourceExhausted);
  EXPECT_NE(one.error().text.find("larger than all that --max-request-memory allows"),
            std::string::npos);
  one.Recycle();
  one.Begin(counted, false);
  ASSERT_TRUE(budget.TryTake(90 << 10));
  const std::string framed = Prefixed(std::string(50 << 10, 'x'));
  one.Take(Bytes(framed), framed.size());
  EXPECT_EQ(one.state(), State::kRefused);
  EXPECT_EQ(one.error().text,
            "The server holds as many bytes of requests as --max-request-memory allows");
  EXPECT_EQ(counted.count, 0u);
  EXPECT_EQ(budget.used(), uint64_t{90 << 10});
}

}  // namespace
}  // namespace nereid::http2
