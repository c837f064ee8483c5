// SPDX-License-Identifier: Apache-2.0
// Tables for a terminal or a pipe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::cli {

// How a text stands out on a terminal with colours.
enum class Style { kPlain, kBold, kDim, kGood, kWarning, kBad };

// Returns `text` between the escape sequences of the style.
std::string Styled(Style style, std::string_view text);

// The number of columns of a terminal that a text takes, for text without wide characters and
// without escape sequences.
size_t DisplayWidth(std::string_view text);

// One cell of a table; made of a text by itself.
struct Cell {
  Cell(std::string text, Style style = Style::kPlain) : text(std::move(text)), style(style) {}
  Cell(const char* text, Style style = Style::kPlain) : text(text), style(style) {}

  std::string text;
  Style style;
};

// The head of a column.
struct Column {
  std::string title;
  bool is_number = false;   // aligned to the right
  bool may_shrink = false;  // shortened with an ellipsis if the table is too wide otherwise
};

// Columns as wide as their widest cell, two spaces between them, no frame. Thread-compatible.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Control characters, which texts from servers and files may contain, are replaced. REQUIRES: as
  // many cells as there are columns.
  void Add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }

  // Returns the lines, each with its end. `width` is that of the terminal; 0: unlimited.
  std::string Render(size_t width, bool has_colours) const;

 private:
  std::vector<size_t> Widths(size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace nereid::cli
