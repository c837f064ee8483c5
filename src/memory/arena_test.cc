// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace nereid::memory {
namespace {

TEST(Arena, KeepsWhatItGaveUntilReset) {
  InlineArena<256> arena;
  std::vector<std::string_view> copies;
  for (int i = 0; i < 2000; ++i) copies.push_back(arena.Copy("value " + std::to_string(i)));
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(copies[i], "value " + std::to_string(i));
  arena.Reset();
  EXPECT_EQ(arena.Copy("again"), "again");
}

TEST(Arena, HonoursAlignmentAndServesLargeRequests) {
  InlineArena<256> arena;
  arena.Allocate(1, 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.Allocate(64, 64)) % 64, 0u);
  std::byte* const large = arena.Allocate(100000, 64);
  ASSERT_NE(large, nullptr);
  std::memset(large, 7, 100000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 64, 0u);
  EXPECT_EQ(arena.Copy("small"), "small");
}

TEST(Arena, GivesPiecesThatNeverOverlapWhateverTheirSizesAndAlignments) {
  std::mt19937 random(1);
  InlineArena<512> arena;
  for (int round = 0; round < 50; ++round) {
    struct Piece {
      std::byte* data;
      size_t size;
      std::byte mark;
    };
    std::vector<Piece> pieces;
    for (uint32_t i = random() % 300; i > 0; --i) {
      const size_t alignment = size_t{1} << random() % 7;
      const size_t size = random() % 10 == 0 ? random() % 20'000 : random() % 100;
      std::byte* const data = arena.Allocate(size, alignment);
      ASSERT_NE(data, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
      const auto mark = static_cast<std::byte>(random());
      for (size_t at = 0; at < size; ++at) data[at] = mark;
      pieces.push_back({data, size, mark});
    }
    for (const Piece& piece : pieces) {
      for (size_t at = 0; at < piece.size; ++at) ASSERT_EQ(piece.data[at], piece.mark);
    }
    arena.Reset();
  }
}

TEST(Arena, EndsTextsWithAZeroWhereAsked) {
  InlineArena<64> arena;
  EXPECT_STREQ(arena.CopyTerminated("").data(), "");
  for (size_t size = 1; size < 300; ++size) {
    const std::string_view copy = arena.CopyTerminated(std::string(size, 'x'));
    ASSERT_EQ(copy.size(), size);
    ASSERT_EQ(std::strlen(copy.data()), size);
  }
}

}  // namespace
}  // namespace nereid::memory
