// SPDX-License-Identifier: Apache-2.0
#include "http1/receive_buffer.h"

#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

void Bring(ReceiveBuffer& buffer, std::string_view bytes) {
  const std::span<std::byte> room = buffer.Room();
  ASSERT_GE(room.size(), bytes.size());
  std::memcpy(room.data(), bytes.data(), bytes.size());
  buffer.Received(bytes.size());
}

TEST(ReceiveBuffer, StartsOverWhenItsMemoryIsNotHeld) {
  ReceiveBuffer buffer;
  Bring(buffer, "first");
  const char* const first = buffer.bytes().data();
  buffer.ConsumeAll();
  Bring(buffer, "second");
  EXPECT_EQ(first, buffer.bytes().data());
  EXPECT_EQ("second", buffer.bytes());
}

TEST(ReceiveBuffer, ContinuesAfterBytesThatAreInUse) {
  ReceiveBuffer buffer;
  Bring(buffer, "first");
  const std::string_view first = buffer.bytes();
  const base::BufferRef user = buffer.memory();
  buffer.ConsumeAll();
  Bring(buffer, "second");
  EXPECT_EQ("first", first);
  EXPECT_EQ("second", buffer.bytes());
  // The padding that readers of the first bytes may read is not overwritten.
  EXPECT_GE(buffer.bytes().data(), first.data() + first.size() + base::kBufferPadding);
}

TEST(ReceiveBuffer, PinnedBytesSurviveAnyNumberOfReads) {
  ReceiveBuffer buffer;
  Bring(buffer, "pinned");
  const std::string_view pinned = buffer.bytes();
  buffer.ConsumeAll();
  buffer.Pin();
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    const std::string bytes(1000, static_cast<char>('a' + i));
    Bring(buffer, bytes);
    expected += bytes;
    ASSERT_EQ("pinned", pinned);
    ASSERT_EQ(expected, buffer.bytes());
  }
  buffer.Unpin();
  EXPECT_EQ(expected, buffer.bytes());
}

TEST(ReceiveBuffer, ReadsWhereTheNextRequestIsExpectedToBeAligned) {
  ReceiveBuffer buffer;
  for (const size_t offset : {0u, 1u, 63u, 64u, 100u}) {
    buffer.ExpectAligned(offset);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(buffer.Room().data() + offset) % 64) << offset;
  }
}

TEST(ReceiveBuffer, MovesBytesToAlignThemWhereItMay) {
  ReceiveBuffer buffer;
  Bring(buffer, "head body");
  buffer.Consume(5);
  EXPECT_FALSE(buffer.Align(1, false));
  EXPECT_EQ("body", buffer.bytes());
  EXPECT_TRUE(buffer.Align(1, true));
  EXPECT_EQ("body", buffer.bytes());
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(buffer.bytes().data() + 1) % 64);
  EXPECT_TRUE(buffer.Align(1, false));  // nothing to move
}

TEST(ReceiveBuffer, ReadsAsMuchAsTheLastRequestNeeded) {
  ReceiveBuffer buffer;
  EXPECT_EQ(ReceiveBuffer::kSmallBytes, buffer.Room().size());
  buffer.ExpectSize(ReceiveBuffer::kSmallBytes + 1, false);
  buffer.Release();
  EXPECT_EQ(ReceiveBuffer::kLargeBytes, buffer.Room().size());
  // A request that fits no read at all is received into its own memory.
  buffer.ExpectSize(ReceiveBuffer::kLargeBytes + 1, false);
  buffer.Release();
  EXPECT_EQ(ReceiveBuffer::kSmallBytes, buffer.Room().size());
  buffer.ExpectSize(0, true);
  buffer.Release();
  EXPECT_EQ(ReceiveBuffer::kLargeBytes, buffer.Room().size());
}

TEST(ReceiveBuffer, HasNothingToSpareWithoutMemory) {
  ReceiveBuffer buffer;
  EXPECT_TRUE(buffer.Spare().empty());
  EXPECT_TRUE(buffer.bytes().empty());
  Bring(buffer, "abc");
  EXPECT_EQ(buffer.bytes().data() + 3, reinterpret_cast<const char*>(buffer.Spare().data()));
  buffer.ConsumeAll();
  buffer.Release();
  EXPECT_TRUE(buffer.Spare().empty());
}

}  // namespace
}  // namespace nereid::http1
