// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <algorithm>

namespace nereid::base {

std::vector<std::string> TextTable::Lines() const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const Row& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string frame = "+";
  for (const size_t width : widths) frame += std::string(width + 2, '-') + "+";
  std::vector<std::string> lines = {frame};
  for (const Row& row : rows_) {
    std::string& line = lines.emplace_back("|");
    for (size_t i = 0; i < widths.size(); ++i) {
      line += ' ' + row[i] + std::string(widths[i] - row[i].size() + 1, ' ') + '|';
    }
    if (&row == &rows_.front()) lines.push_back(frame);
  }
  lines.push_back(frame);
  return lines;
}

}  // namespace nereid::base
