// SPDX-License-Identifier: Apache-2.0
// Reads a stream to its end without an exception.
#pragma once

#include <istream>
#include <string>

namespace nereid::base {

// All that is left of `in`, which is bad() afterwards where it could not be read: a folder opens
// like a file and fails at the first read. Iterators of a stream's buffer would throw then.
inline std::string ReadAll(std::istream& in) {
  std::string text;
  char piece[16 * 1024];
  do {
    in.read(piece, sizeof(piece));
    text.append(piece, static_cast<size_t>(in.gcount()));
  } while (in);
  return text;
}

}  // namespace nereid::base
