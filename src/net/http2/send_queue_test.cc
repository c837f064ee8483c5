// SPDX-License-Identifier: Apache-2.0
#include "http2/send_queue.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http2/testing/client.h"

namespace nereid::http2 {
namespace {

struct SendQueueTest : testing::Test {
  ~SendQueueTest() override { queue.Drop(output); }

  void Push(std::string_view text) {
    GrpcMessagePtr message = GrpcMessage::Create();
    ASSERT_TRUE(message->Append(text));
    Push(std::move(message));
  }
  void Push(GrpcMessagePtr message) {
    unsent.Add(message->size());
    queue.Push(std::move(message));
  }
  // Makes a message that refers to `text` and increments `released` when it is released.
  GrpcMessagePtr Referring(const std::string& text) {
    GrpcMessagePtr message = GrpcMessage::Create();
    message->Refer(reinterpret_cast<const std::byte*>(text.data()), text.size());
    message->Keep(&released, [](void* count) { ++*static_cast<int*>(count); });
    return message;
  }
  SendQueue::Framed Frame(size_t length) { return queue.Frame(length, output, unsent); }
  // Returns the pending output, and marks it as written.
  std::string Write() {
    std::string bytes;
    for (const iovec& piece : output.pieces()) {
      bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
    }
    output.Advance(bytes.size());
    return bytes;
  }

  Http2Output output;
  UnsentCount unsent;
  SendQueue queue;
  int released = 0;
};

TEST_F(SendQueueTest, FramesMessagesOneAfterTheOtherHoweverTheFramesAreCut) {
  const std::string large = Noise(10'000, 1);
  for (const size_t step : {1u, 4u, 7u, 1000u, 100'000u}) {
    Push("first");
    Push("");
    Push(Referring(large));
    std::string bytes;
    while (queue.bytes() > 0) {
      EXPECT_TRUE(Frame(std::min<size_t>(step, queue.bytes())).is_ok);
      bytes += Write();
    }
    EXPECT_TRUE(queue.empty());
    EXPECT_FALSE(queue.is_begun());
    EXPECT_TRUE(Messages(bytes) == (std::vector<std::string>{"first", "", large})) << step;
  }
  EXPECT_EQ(released, 5);
}

TEST_F(SendQueueTest, MarksCompressedMessages) {
  GrpcMessagePtr message = GrpcMessage::Create();
  ASSERT_TRUE(message->Append("zzz"));
  message->order.is_compressed = true;
  Push(std::move(message));
  Frame(queue.bytes());
  EXPECT_EQ(Write(), Prefixed("zzz", true));
}

TEST_F(SendQueueTest, ReportsHowMuchIsLeft) {
  Push("0123456789");
  EXPECT_EQ(queue.bytes(), 15u);
  EXPECT_FALSE(queue.is_begun());
  Frame(3);
  EXPECT_EQ(queue.bytes(), 12u);
  EXPECT_TRUE(queue.is_begun());
  Frame(12);
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_FALSE(queue.is_begun());
}

TEST_F(SendQueueTest, MessagesAreUnsentUntilTheirLastByteIsFramed) {
  Push("abc");
  Push("defgh");
  EXPECT_EQ(unsent.messages(), 2u);
  EXPECT_EQ(unsent.bytes(), 8u);
  EXPECT_FALSE(Frame(7).is_wanted);
  EXPECT_EQ(unsent.messages(), 2u);
  EXPECT_FALSE(Frame(1).is_wanted);
  EXPECT_EQ(unsent.messages(), 1u);
  EXPECT_EQ(unsent.bytes(), 5u);
  unsent.Want(true);
  EXPECT_FALSE(Frame(9).is_wanted);  // none has left
  EXPECT_TRUE(Frame(1).is_wanted);
  EXPECT_EQ(unsent.messages(), 0u);
}

TEST_F(SendQueueTest, RefusesAFrameOfMoreThanThereIs) {
  Push("abc");
  EXPECT_FALSE(Frame(9).is_ok);
  EXPECT_EQ(queue.bytes(), 8u);
  EXPECT_EQ(Write(), "");
  EXPECT_TRUE(Frame(8).is_ok);
  EXPECT_EQ(Write(), Prefixed("abc"));
}

TEST_F(SendQueueTest, APromiseEndsWithItsFrameOrWithTheStream) {
  Push("abc");
  EXPECT_EQ(queue.Promise(100), 8u);
  EXPECT_TRUE(queue.is_begun());
  Push("def");
  Frame(8);
  EXPECT_FALSE(queue.is_begun());
  EXPECT_EQ(queue.Promise(6), 6u);
  EXPECT_TRUE(queue.is_begun());
  queue.Drop(output);
  EXPECT_FALSE(queue.is_begun());
}

TEST_F(SendQueueTest, AMessageThatTheOutputRefersToLivesUntilItIsWritten) {
  const std::string large = Noise(10'000, 2);
  Push(Referring(large));
  Frame(queue.bytes());
  EXPECT_EQ(released, 0);
  output.Advance(10'004);
  EXPECT_EQ(released, 0);
  output.Advance(1);
  EXPECT_EQ(released, 1);
}

TEST_F(SendQueueTest, ADroppedMessageLivesUntilTheOutputThatRefersToItIsWritten) {
  const std::string large = Noise(10'000, 3);
  Push(Referring(large));
  Push(Referring(large));
  Frame(5000);
  queue.Drop(output);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_EQ(released, 1);  // the message that was not begun
  output.Advance(4999);
  EXPECT_EQ(released, 1);
  output.Advance(1);
  EXPECT_EQ(released, 2);
}

TEST_F(SendQueueTest, ADroppedMessageGoesAtOnceWhenNothingOfItIsToBeWritten) {
  const std::string large = Noise(10'000, 4);
  Push(Referring(large));
  Frame(5000);
  Write();
  queue.Drop(output);
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace nereid::http2
