// SPDX-License-Identifier: Apache-2.0
#include "redis_cache/value.h"

#include <gtest/gtest.h>

#include <random>

namespace nereid::redis_cache {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(RedisValue, ContainsTheSizesOfItsBuffers) {
  const std::vector<size_t> sizes = {1, 200, 33};
  const auto value = MakeValue(sizes);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), ValueHeaderSize(3) + 234);
  EXPECT_EQ(ReadValueSizes(Bytes(*value)), sizes);
}

TEST(RedisValue, IsNotMadeOfNoBuffersOrTooManyBytes) {
  EXPECT_FALSE(MakeValue({}));
  EXPECT_FALSE(MakeValue({0}));
  EXPECT_FALSE(MakeValue({SIZE_MAX, 2}));
  EXPECT_FALSE(MakeValue({size_t{400} << 20, size_t{400} << 20}));
  EXPECT_FALSE(MakeValue(std::vector<size_t>(kMaxBuffers + 1, 1)));
}

TEST(RedisValue, EveryShorterOrLongerValueIsRefused) {
  const std::string value = *MakeValue({5, 7});
  for (size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(ReadValueSizes(Bytes(value.substr(0, size)))) << size;
  }
  EXPECT_FALSE(ReadValueSizes(Bytes(value + "x")));
}

TEST(RedisValue, RandomBytesAreReadWithinTheirBounds) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string value = *MakeValue({5, 7});
    for (int flips = 0; flips < 3; ++flips) {
      value[random() % value.size()] = static_cast<char>(random());
    }
    value.resize(random() % (value.size() + 1));
    if (const auto sizes = ReadValueSizes(Bytes(value))) {
      size_t sum = ValueHeaderSize(sizes->size());
      for (const size_t size : *sizes) sum += size;
      EXPECT_EQ(sum, value.size());
    }
  }
}

}  // namespace
}  // namespace nereid::redis_cache
