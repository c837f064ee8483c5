// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

TEST(TextTable, IsAsWideAsItsWidestCells) {
  TextTable table({"Model", "Version"});
  table.Add({"a", "1"});
  table.Add({"a longer one", "12"});
  EXPECT_EQ(table.Lines(), (std::vector<std::string>{
                               "+--------------+---------+",
                               "| Model        | Version |",
                               "+--------------+---------+",
                               "| a            | 1       |",
                               "| a longer one | 12      |",
                               "+--------------+---------+",
                           }));
}

TEST(TextTable, IsThereWithoutRows) {
  EXPECT_EQ(TextTable({"A"}).Lines(),
            (std::vector<std::string>{"+---+", "| A |", "+---+", "+---+"}));
}

}  // namespace
}  // namespace nereid::base
