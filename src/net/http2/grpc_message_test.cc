// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_message.h"

#include <string>

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

std::string Content(const GrpcMessage& message) {
  std::string content;
  for (size_t i = 0; i < message.segment_count(); ++i) {
    const GrpcMessage::Segment& segment = message.segment(i);
    content.append(reinterpret_cast<const char*>(segment.data), segment.size);
  }
  return content;
}

const std::byte* Bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

TEST(GrpcMessage, IsWhatWasPutIntoIt) {
  const std::string referred = "referred";
  GrpcMessagePtr message = GrpcMessage::Create();
  EXPECT_TRUE(message->Append("one"));
  EXPECT_TRUE(message->Append(""));
  message->Refer(Bytes(referred), referred.size());
  std::byte* const place = message->Extend(10);
  ASSERT_NE(place, nullptr);
  std::fill_n(place, 10, std::byte{'x'});
  message->Shorten(7);
  EXPECT_TRUE(message->Append("!"));
  EXPECT_EQ(Content(*message), "onereferredxxx!");
  EXPECT_EQ(message->size(), 15u);
}

TEST(GrpcMessage, SmallPartsThatLieTogetherAreOneSegment) {
  GrpcMessagePtr message = GrpcMessage::Create();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(message->Append("part"));
  EXPECT_EQ(message->segment_count(), 1u);
}

TEST(GrpcMessage, TakesAnyNumberOfSegmentsAndBytes) {
  const std::string referred = "abc";
  GrpcMessagePtr message = GrpcMessage::Create();
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    const std::string own(static_cast<size_t>(i) * 100, static_cast<char>('a' + i % 26));
    EXPECT_TRUE(message->Append(own));
    message->Refer(Bytes(referred), referred.size());
    expected += own + referred;
  }
  EXPECT_EQ(message->size(), expected.size());
  EXPECT_TRUE(Content(*message) == expected);
}

TEST(GrpcMessage, KeepsWhatItRefersToUntilItIsCleared) {
  base::BufferRef buffer = base::AcquireBuffer(100);
  int released = 0;
  GrpcMessagePtr message = GrpcMessage::Create();
  message->Refer(buffer.data(), 100, buffer);
  message->Keep(&released, [](void* count) { ++*static_cast<int*>(count); });
  EXPECT_FALSE(buffer.unique());
  message->Clear();
  EXPECT_TRUE(buffer.unique());
  EXPECT_EQ(released, 1);
  EXPECT_EQ(message->size(), 0u);
  message->Keep(&released, [](void* count) { ++*static_cast<int*>(count); });
  message.reset();
  EXPECT_EQ(released, 2);
}

TEST(GrpcMessage, IsNewWhenItComesOutOfThePoolAgain) {
  GrpcMessagePtr message = GrpcMessage::Create();
  message->order.kinds = GrpcOrder::kFinish;
  message->order.status_code = 5;
  message->order.status_text = "text";
  message->order.is_compressed = true;
  EXPECT_TRUE(message->Append("something"));
  message.reset();
  message = GrpcMessage::Create();
  EXPECT_EQ(message->size(), 0u);
  EXPECT_EQ(message->order.kinds, 0);
  EXPECT_EQ(message->order.status_code, 0);
  EXPECT_EQ(message->order.status_text, "");
  EXPECT_FALSE(message->order.is_compressed);
}

}  // namespace
}  // namespace nereid::http2
