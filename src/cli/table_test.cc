// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <random>

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

// The lines of a text; each without its end.
std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  EXPECT_EQ(text, "") << "the last line has an end, too";
  return lines;
}

std::string WithoutColours(std::string text) {
  for (size_t at = text.find('\x1b'); at != text.npos; at = text.find('\x1b', at)) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

TEST(Table, WhateverIsInTheCellsColumnsStayBelowEachOtherWithinTheTerminal) {
  constexpr const char* kTexts[] = {"",   "a", "é€", "seven", "a much longer text than others",
                                    "-12"};
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Column> columns = {{.title = "#"}};
    for (size_t i = random() % 4; i > 0; --i) {
      columns.push_back({.title = kTexts[1 + random() % 5],
                         .is_number = random() % 2 == 0,
                         .may_shrink = random() % 2 == 0});
    }
    columns.push_back({.title = "LAST", .may_shrink = true});
    Table table(columns);
    for (size_t row = random() % 5; row > 0; --row) {
      std::vector<Cell> cells = {"|"};
      while (cells.size() + 1 < columns.size()) {
        cells.emplace_back(kTexts[random() % 6], static_cast<Style>(random() % 6));
      }
      cells.emplace_back("|");
      table.Add(std::move(cells));
    }
    const std::string whole = table.Render(0, false);
    const std::vector<std::string> lines = Lines(whole);
    ASSERT_EQ(lines.size(), table.rows().size() + 1);
    const auto place_of = [](const std::string& line, std::string_view mark) {
      return DisplayWidth(std::string_view(line).substr(0, line.rfind(mark)));
    };
    for (size_t i = 1; i < lines.size(); ++i) {
      ASSERT_EQ(place_of(lines[i], "|"), place_of(lines[0], "LAST")) << whole;
    }
    ASSERT_EQ(WithoutColours(table.Render(0, true)), whole);
    size_t width = 0;
    for (const std::string& line : lines) width = std::max(width, DisplayWidth(line));
    ASSERT_EQ(table.Render(width, false), whole) << "nothing is shortened without need";
    // A terminal that is a little too narrow is not exceeded if a column can give way to it.
    for (size_t i = 1; i + 1 < columns.size(); ++i) {
      size_t widest = DisplayWidth(columns[i].title);
      for (const auto& row : table.rows()) widest = std::max(widest, DisplayWidth(row[i].text));
      if (!columns[i].may_shrink || widest < 10) continue;
      for (const std::string& line : Lines(table.Render(width - 3, false))) {
        ASSERT_LE(DisplayWidth(line), width - 3) << line;
      }
    }
  }
}

TEST(Table, ControlCharactersOfServersDoNotReachTheTerminal) {
  Table table({{.title = "A"}, {.title = "B"}});
  table.Add({"x\x1b[2J\ny", "\xFF"});
  EXPECT_EQ(Lines(table.Render(0, false)).size(), 2U);
  EXPECT_EQ(table.Render(0, true).find("\x1b[2J"), std::string::npos);
}

}  // namespace
}  // namespace nereid::cli
