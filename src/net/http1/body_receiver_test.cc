// SPDX-License-Identifier: Apache-2.0
#include "http1/body_receiver.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace nereid::http1 {
namespace {

struct BodyReceiverTest : testing::Test {
  void Begin(const HttpBodyPlan& plan) {
    body.Begin();
    body.SetPlan(plan);
  }
  // Receives all of `bytes` into the memory that the receiver provides.
  void Receive(std::string_view bytes) {
    while (!bytes.empty()) {
      ASSERT_FALSE(body.is_whole());
      const std::span<std::byte> room = body.Room();
      const size_t count = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), count);
      body.Received(count);
      bytes.remove_prefix(count);
    }
  }
  HttpRequest request;
  BodyReceiver body{request, 1000};
};

TEST_F(BodyReceiverTest, JoinsBytesThatCameWithTheHeadAndLaterOnes) {
  Begin({.max_bytes = 100});
  ASSERT_TRUE(body.Expect(10));
  EXPECT_EQ(4u, body.Take("0123"));
  EXPECT_EQ(4u, body.arrived());
  Receive("456789");
  EXPECT_TRUE(body.is_whole());
  EXPECT_EQ(0u, body.Take("the next request"));
  body.Finish();
  EXPECT_EQ("0123456789", request.body);
  EXPECT_EQ(10u, request.body_size);
}

TEST_F(BodyReceiverTest, PlacesTheSplitOnAnAlignedAddress) {
  for (const size_t split : {0u, 1u, 64u, 70u}) {
    request = {};
    Begin({.max_bytes = 100, .split = split});
    ASSERT_TRUE(body.Expect(100));
    Receive(std::string(100, 'x'));
    body.Finish();
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(request.body.data() + split) % 64) << split;
  }
}

TEST_F(BodyReceiverTest, KeepsTheFrontOfAnOversizeBody) {
  Begin({.max_bytes = 50, .split = 5});
  ASSERT_TRUE(body.Expect(100));
  EXPECT_EQ(2u, body.Take("01"));
  Receive("234" + std::string(50, 'x'));
  EXPECT_EQ(55u, body.arrived());
  EXPECT_FALSE(body.is_whole());
  EXPECT_EQ(45u, body.Take(std::string(45, 'y') + "the next request"));
  EXPECT_TRUE(body.is_whole());
  body.Finish();
  EXPECT_EQ("01234", request.body);
  EXPECT_TRUE(request.body_truncated);
  EXPECT_EQ(100u, request.body_size);
  EXPECT_FALSE(body.leaves_rest());
}

TEST_F(BodyReceiverTest, LeavesARestThatIsNotWorthReading) {
  Begin({.max_bytes = 50});
  ASSERT_TRUE(body.Expect(1001));
  EXPECT_TRUE(body.leaves_rest());
  EXPECT_TRUE(body.is_whole());
  EXPECT_EQ(0u, body.Take("whatever"));
}

TEST_F(BodyReceiverTest, CollectsChunksInMemoryThatGrows) {
  Begin({.max_bytes = 1 << 20, .split = 3});
  std::string expected;
  for (size_t size = 1; size < 50'000; size = size * 2 + 1) {
    const std::string chunk(size, static_cast<char>('a' + size % 26));
    body.OnChunkBytes(chunk);
    expected += chunk;
  }
  EXPECT_EQ(expected.size(), body.arrived());
  body.Finish();
  EXPECT_EQ(expected, request.body);
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(request.body.data() + 3) % 64);
}

TEST_F(BodyReceiverTest, ChunksBeyondTheLimitAreThrownAwayUntilTheyAreTooMany) {
  Begin({.max_bytes = 100});
  body.OnChunkBytes(std::string(100, 'x'));
  EXPECT_FALSE(request.body_truncated);
  body.OnChunkBytes(std::string(1000, 'x'));
  EXPECT_TRUE(request.body_truncated);
  EXPECT_FALSE(body.has_overflowed());
  body.OnChunkBytes("x");
  EXPECT_TRUE(body.has_overflowed());
  body.Finish();
  EXPECT_EQ("", request.body);
  EXPECT_EQ(1101u, request.body_size);
}

TEST_F(BodyReceiverTest, CountsWhatHasArrivedAndNotWhatWasAnnounced) {
  base::Budget budget(size_t{1} << 20);
  BodyReceiver counted{request, 1000, &budget};
  counted.Begin();
  counted.SetPlan({.max_bytes = size_t{64} << 20});
  ASSERT_TRUE(counted.Expect(size_t{900} << 10));
  EXPECT_EQ(budget.used(), 0u);
  counted.Take("x");
  EXPECT_EQ(budget.used(), 4096u);
  EXPECT_FALSE(counted.is_over_budget());
  request.body_buffer.Reset();
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(BodyReceiverTest, ChunksBeyondTheBudgetAreRefused) {
  base::Budget budget(size_t{100} << 10);
  BodyReceiver counted{request, 1000, &budget};
  counted.Begin();
  counted.SetPlan({.max_bytes = size_t{64} << 20});
  const std::string chunk(30 << 10, 'x');
  for (int i = 0; i < 8 && !counted.is_over_budget(); ++i) counted.OnChunkBytes(chunk);
  EXPECT_TRUE(counted.is_over_budget());
  EXPECT_EQ(budget.refusals(), 1u);
  request.body_buffer.Reset();
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace nereid::http1
