// SPDX-License-Identifier: Apache-2.0
#include "access/failure_limits.h"

#include <gtest/gtest.h>

namespace nereid::access {
namespace {

TEST(FailureLimits, BlockAnAddressUntilItsWindowIsOver) {
  FailureLimits limits;
  for (uint32_t i = 1; i < FailureLimits::kMaxFailures; ++i) {
    EXPECT_FALSE(limits.Note("a", 100));
    EXPECT_FALSE(limits.Blocks("a", 100));
  }
  EXPECT_TRUE(limits.Note("a", 110));
  EXPECT_FALSE(limits.Note("a", 110));  // reached before
  EXPECT_EQ(limits.Blocks("a", 110), 50u);
  EXPECT_FALSE(limits.Blocks("b", 110));
  EXPECT_FALSE(limits.Blocks("a", 100 + FailureLimits::kWindowS));
  EXPECT_FALSE(limits.Note("a", 100 + FailureLimits::kWindowS));
  EXPECT_FALSE(limits.Blocks("a", 100 + FailureLimits::kWindowS));
}

TEST(FailureLimits, TellOnlySoManyAddressesApart) {
  FailureLimits limits;
  for (uint32_t i = 0; i < FailureLimits::kMaxFailures; ++i) limits.Note("bad", 100);
  for (size_t i = 0; i < 2 * FailureLimits::kMaxAddresses; ++i) {
    limits.Note(std::to_string(i), 100 + i / 1000);
    ASSERT_LE(limits.size(), FailureLimits::kMaxAddresses);
  }
  EXPECT_FALSE(limits.Blocks("bad", 109));
  for (uint32_t i = 0; i < FailureLimits::kMaxFailures; ++i) limits.Note("late", 109);
  EXPECT_TRUE(limits.Blocks("late", 109));
}

TEST(Networks, OfIpVersion6CountAsOneAddress) {
  EXPECT_EQ(NetworkOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(NetworkOf("2001:db8:1:2::1"), NetworkOf("2001:db8:1:2:ffff::"));
  EXPECT_NE(NetworkOf("2001:db8:1:2::1"), NetworkOf("2001:db8:1:3::1"));
  EXPECT_EQ(NetworkOf("10.0.0.7"), "10.0.0.7");
  EXPECT_NE(NetworkOf("::ffff:10.0.0.7"), NetworkOf("::ffff:10.0.0.8"));
  EXPECT_EQ(NetworkOf("unix:uid=1000"), "unix:uid=1000");
  EXPECT_EQ(NetworkOf(""), "");
}

}  // namespace
}  // namespace nereid::access
