// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

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

}  // namespace
}  // namespace nereid::memory
