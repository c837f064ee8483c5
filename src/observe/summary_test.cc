// SPDX-License-Identifier: Apache-2.0
#include "observe/summary.h"

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

TEST(Summary, KnowsTheQuantilesOfItsValues) {
  Summary summary({{0.5, 0.01}, {0.9, 0.01}});
  for (int i = 1; i <= 100; ++i) summary.Observe(i);
  const SummaryValue value = summary.Read();
  EXPECT_EQ(value.count, 100u);
  EXPECT_EQ(value.sum, 5050);
  ASSERT_EQ(value.quantiles.size(), 2u);
  EXPECT_NEAR(value.quantiles[0].value, 50, 2);
  EXPECT_NEAR(value.quantiles[1].value, 90, 2);
}

TEST(Summary, ReadsQuantilesAndIgnoresInvalidEntries) {
  const Quantiles read = ParseQuantiles("0.1:0.0.1,0.7:0.01,x:1,0.5,0.75:0.01,2:0");
  ASSERT_EQ(read.list.size(), 3u);
  EXPECT_EQ(read.list[0].quantile, 0.1);
  EXPECT_EQ(read.list[0].error, 0);
  EXPECT_EQ(read.list[2].quantile, 0.75);
  EXPECT_EQ(read.invalid, (std::vector<std::string>{"x:1", "0.5", "2:0"}));
}

}  // namespace
}  // namespace nereid::observe
