// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/printable.h"

namespace nereid::cli {
namespace {

constexpr size_t kGap = 2;
// A column that shrinks keeps this width.
constexpr size_t kMinWidth = 6;
constexpr std::string_view kEllipsis = "…";

std::string_view Escape(Style style) {
  switch (style) {
    case Style::kPlain:
      break;
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kWarning:
      return "\x1b[33m";
    case Style::kBad:
      return "\x1b[31m";
  }
  return {};
}

// Whether the byte continues a character of UTF-8 rather than beginning one.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Returns the beginning of `text` that is `width` columns wide with an ellipsis at its end.
std::string Shorten(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  size_t end = 0;
  for (size_t columns = 0; end < text.size(); ++end) {
    if (!Continues(text[end]) && ++columns == width) break;
  }
  return std::string(text.substr(0, end)).append(kEllipsis);
}

}  // namespace

std::string Styled(Style style, std::string_view text) {
  if (style == Style::kPlain || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", Escape(style), text);
}

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

void Table::Add(std::vector<Cell> row) {
  NEREID_CHECK(row.size() == columns_.size());
  for (Cell& cell : row) cell.text = Printable(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<size_t> Table::Widths(size_t width) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(DisplayWidth(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], DisplayWidth(row[i].text));
  }
  if (width == 0 || widths.empty()) return widths;
  size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
  // One column at a time from the widest, so that columns of equal widths stay equal.
  while (total > width) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!columns_[i].may_shrink || widths[i] <= kMinWidth) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

std::string Table::Render(size_t width, bool has_colours) const {
  const std::vector<size_t> widths = Widths(width);
  std::string out;
  const auto add_line = [&](auto&& cell_of) {
    std::string line;
    size_t pending = 0;  // spaces before the next text, so that no line ends with spaces
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Cell& cell = cell_of(i);
      const std::string text = Shorten(cell.text, widths[i]);
      const size_t padding = widths[i] - std::min(widths[i], DisplayWidth(text));
      if (columns_[i].is_number) pending += padding;
      if (!text.empty()) {
        line.append(pending, ' ');
        line += has_colours ? Styled(cell.style, text) : text;
        pending = 0;
      }
      if (text.empty())
        pending += widths[i] - (columns_[i].is_number ? padding : 0);
      else if (!columns_[i].is_number)
        pending += padding;
      pending += kGap;
    }
    out += line;
    out += '\n';
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Style::kBold);
  add_line([&](size_t i) -> const Cell& { return titles[i]; });
  for (const auto& row : rows_) add_line([&](size_t i) -> const Cell& { return row[i]; });
  return out;
}

}  // namespace nereid::cli
