// SPDX-License-Identifier: Apache-2.0
// The variable sizes in the C++ source of a compiled model, each of which has one or more names.
#pragma once

#include <map>
#include <optional>
#include <string_view>

namespace nereid::pytorch {

// The symbols that one source declares. Points into the source. Thread-compatible.
class Symbols {
 public:
  // Reads a declaration, if the line is one: `int64_t s77 = x_size[0];`,
  // `int64_t s77 = x.sizes()[0];`, `int64_t s78 = s77;`
  void ReadLine(std::string_view line);

  // Returns the number of a symbol, the same for all its names; nothing for what is no size of an
  // input, and for more symbols than calls can be checked for.
  std::optional<int> NumberOf(std::string_view name);

 private:
  std::map<std::string_view, std::string_view> aliases_;
  std::map<std::string_view, std::string_view> sources_;
  std::map<std::string_view, int> numbers_;
};

}  // namespace nereid::pytorch
