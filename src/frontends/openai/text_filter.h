// SPDX-License-Identifier: Apache-2.0
// What a client may see of a text that comes in pieces: it ends in front of the first stop
// sequence, which may extend over several pieces, and it is valid UTF-8, although a piece may end
// within a character. Private to this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::openai {

// A value; thread-compatible. Each byte costs a constant time for each stop sequence.
class TextFilter {
 public:
  TextFilter() = default;
  // `stops` are not empty.
  explicit TextFilter(std::vector<std::string> stops);

  // Takes the next piece and appends to `out` what is certain now: neither the beginning of what
  // may become a stop sequence, nor that of a character. Ignored once stopped().
  void Push(std::string_view piece, std::string& out);
  // Appends what Push has held back, because the text is over.
  void Finish(std::string& out);
  // Whether the text contained a stop sequence.
  bool stopped() const { return stopped_; }

 private:
  // A sequence, and how much of it the text seen so far ends with (Knuth, Morris and Pratt).
  struct Stop {
    std::string text;
    std::vector<size_t> borders;  // borders[i]: the longest border of the first i + 1 bytes
    size_t matched = 0;
  };
  // Returns whether `c` completes the sequence.
  static bool Step(Stop& stop, char c);
  // Passes the first `size` held bytes on.
  void Release(size_t size, std::string& out);

  std::vector<Stop> stops_;
  std::string held_;     // bytes that may belong to a stop sequence
  std::string partial_;  // the beginning of a character
  bool stopped_ = false;
};

// Returns `text` with U+FFFD for each part that is no character.
std::string CleanText(std::string_view text);

}  // namespace nereid::openai
