// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

TEST(Table, ColumnsAreAlignedAndLinesEndWithoutSpaces) {
  Table table({{.title = "MODEL"}, {.title = "COUNT", .is_number = true}, {.title = "STATE"}});
  table.Add({"resnet", "7", "READY"});
  table.Add({"é", "12345678", ""});
  EXPECT_EQ(table.Render(0, false),
            "MODEL      COUNT  STATE\n"
            "resnet         7  READY\n"
            "é       12345678\n");
}

TEST(Table, AnEmptyCellInTheMiddleKeepsTheColumnsBehindIt) {
  Table table({{.title = "A"}, {.title = "B"}, {.title = "C"}});
  table.Add({"1", "", "3"});
  EXPECT_EQ(table.Render(0, false), "A  B  C\n1     3\n");
}

TEST(Table, OnlyColumnsThatMayShrinkAreShortenedToTheWidthOfTheTerminal) {
  Table table({{.title = "MODEL"}, {.title = "REASON", .may_shrink = true}});
  table.Add({"resnet", "the file does not exist"});
  EXPECT_EQ(table.Render(20, false),
            "MODEL   REASON\n"
            "resnet  the file do…\n");
  EXPECT_EQ(table.Render(4, false),
            "MODEL   REASON\n"
            "resnet  the f…\n");
}

TEST(Table, ColoursDoNotChangeTheWidths) {
  Table table({{.title = "A"}, {.title = "B"}});
  table.Add({{"x", Style::kGood}, "y"});
  EXPECT_EQ(table.Render(0, true), "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[32mx\x1b[0m  y\n");
}

}  // namespace
}  // namespace nereid::cli
