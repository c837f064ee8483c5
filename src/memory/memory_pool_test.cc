// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_pool.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::memory {
namespace {

constexpr uintptr_t kStart = 0x10000;
constexpr size_t kUnit = MemoryPool::kAlignment;

TEST(MemoryPool, GivesAlignedPiecesUntilNoneIsLeft) {
  MemoryPool pool(kStart, 3 * kUnit + 7);
  EXPECT_EQ(pool.size(), 3 * kUnit);
  EXPECT_EQ(pool.Take(1), kStart);
  EXPECT_EQ(pool.Take(0), kStart + kUnit);
  EXPECT_EQ(pool.Take(kUnit + 1), 0u);
  EXPECT_EQ(pool.Take(kUnit), kStart + 2 * kUnit);
  EXPECT_EQ(pool.used(), 3 * kUnit);
  EXPECT_EQ(pool.Take(1), 0u);
}

TEST(MemoryPool, JoinsNeighboursThatWereGivenBack) {
  MemoryPool pool(kStart, 4 * kUnit);
  std::vector<uintptr_t> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(pool.Take(kUnit));
  for (const int i : {1, 3, 2, 0}) EXPECT_TRUE(pool.Give(taken[static_cast<size_t>(i)]));
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_EQ(pool.Take(4 * kUnit), kStart);
}

TEST(MemoryPool, RefusesWhatIsNotTaken) {
  MemoryPool pool(kStart, 4 * kUnit);
  const uintptr_t taken = pool.Take(2 * kUnit);
  EXPECT_FALSE(pool.Give(taken + kUnit));
  EXPECT_TRUE(pool.Give(taken));
  EXPECT_FALSE(pool.Give(taken));
}

TEST(MemoryPool, AnswersSizesThatNoPoolHas) {
  MemoryPool pool(kStart, 4 * kUnit);
  EXPECT_EQ(pool.Take(SIZE_MAX), 0u);
  EXPECT_EQ(pool.Take(4 * kUnit + 1), 0u);
  MemoryPool empty(kStart, 0);
  EXPECT_EQ(empty.Take(1), 0u);
}

TEST(MemoryPool, PiecesInUseNeverOverlapWhateverTheOrder) {
  constexpr size_t kSize = 64 * kUnit;
  MemoryPool pool(kStart, kSize);
  std::mt19937 random(1);
  std::map<uintptr_t, size_t> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !taken.empty()) {
      auto one = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      ASSERT_TRUE(pool.Give(one->first));
      taken.erase(one);
      continue;
    }
    const size_t size = random() % (8 * kUnit) + 1;
    const uintptr_t start = pool.Take(size);
    if (start == 0) continue;
    ASSERT_EQ(start % kUnit, 0u);
    ASSERT_LE(start + size, kStart + kSize);
    const auto after = taken.lower_bound(start);
    ASSERT_TRUE(after == taken.end() || start + size <= after->first);
    if (after != taken.begin()) {
      const auto& [before, before_size] = *std::prev(after);
      ASSERT_LE(before + before_size, start);
    }
    taken.emplace(start, size);
  }
  for (const auto& [start, size] : taken) pool.Give(start);
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_EQ(pool.Take(kSize), kStart);
}

}  // namespace
}  // namespace nereid::memory
