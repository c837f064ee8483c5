// SPDX-License-Identifier: Apache-2.0
#include "schedule/token_bucket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nereid::schedule {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kStart = 5'000 * kSecond;

TEST(TokenBucket, HasWhatArrivesInASecondFromTheStart) {
  TokenBucket bucket(3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bucket.Has(1, kStart));
    bucket.Take(1, kStart);
  }
  EXPECT_FALSE(bucket.Has(1, kStart));
  EXPECT_EQ(bucket.Until(3, kStart), std::chrono::seconds(1));
  EXPECT_TRUE(bucket.Has(3, kStart + kSecond));
  EXPECT_EQ(bucket.Left(kStart + 100 * kSecond), 3);
}

TEST(TokenBucket, LetsRatesBelowOneASecondSaveUpOne) {
  TokenBucket bucket(0.5);
  EXPECT_TRUE(bucket.Has(1, kStart));
  bucket.Take(1, kStart);
  EXPECT_EQ(bucket.Until(1, kStart), std::chrono::seconds(2));
}

TEST(TokenBucket, LetsMoreThanItHoldsBeOwed) {
  TokenBucket bucket(10);
  EXPECT_TRUE(bucket.Has(50, kStart));
  bucket.Take(50, kStart);
  EXPECT_EQ(bucket.Left(kStart), 0);
  EXPECT_FALSE(bucket.Has(1, kStart + 4 * kSecond));
  EXPECT_TRUE(bucket.Has(1, kStart + 5 * kSecond));
}

TEST(TokenBucket, HasEverythingWithoutALimit) {
  TokenBucket bucket;
  EXPECT_FALSE(bucket.is_limited());
  EXPECT_TRUE(bucket.Has(1e18, kStart));
}

// In any window, no more is taken than what arrives in it and what was saved up; and a refusal says
// truly when there will be enough.
TEST(TokenBucket, KeepsItsRateInEveryRandomHistory) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](uint64_t below) {
      return std::uniform_int_distribution<uint64_t>(0, below - 1)(random);
    };
    const auto per_second = static_cast<double>(1 + draw(50));
    TokenBucket bucket(per_second);
    uint64_t now_ns = kStart;
    double model = per_second;  // what a bucket that is filled at each step would have
    for (int step = 0; step < 2000; ++step) {
      const uint64_t passed_ns = draw(kSecond / 10);
      now_ns += passed_ns;
      model = std::min(per_second, model + static_cast<double>(passed_ns) / 1e9 * per_second);
      const auto amount = static_cast<double>(1 + draw(3));
      const double needed = std::min(amount, per_second);
      if (bucket.Has(amount, now_ns)) {
        ASSERT_GE(model + 1e-3, needed) << "seed " << seed;
        bucket.Take(amount, now_ns);
        model -= amount;
        continue;
      }
      ASSERT_LT(model, needed + 1e-3) << "seed " << seed;
      TokenBucket later = bucket;
      const auto wait_ns = static_cast<uint64_t>(bucket.Until(amount, now_ns).count());
      ASSERT_GT(wait_ns, 0u);
      ASSERT_TRUE(later.Has(amount, now_ns + wait_ns));
    }
  }
}

}  // namespace
}  // namespace nereid::schedule
