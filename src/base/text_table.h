// SPDX-License-Identifier: Apache-2.0
// A table for people to read in a log: framed, with columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace nereid::base {

// Thread-compatible.
class TextTable {
 public:
  using Row = std::vector<std::string>;

  explicit TextTable(Row headers) : rows_{std::move(headers)} {}

  // REQUIRES: as many cells as there are headers.
  void Add(Row row) { rows_.push_back(std::move(row)); }
  // Returns the lines from top to bottom, without line ends.
  std::vector<std::string> Lines() const;

 private:
  std::vector<Row> rows_;  // the headers are the first
};

}  // namespace nereid::base
