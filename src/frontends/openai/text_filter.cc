// SPDX-License-Identifier: Apache-2.0
#include "openai/text_filter.h"

#include <algorithm>
#include <utility>

namespace nereid::openai {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Returns how many bytes a character has that begins with `lead`; 0 if none does.
size_t LengthOf(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

// Whether `second` may follow `lead`: neither an overlong form nor a surrogate nor beyond U+10FFFF.
bool MayFollow(unsigned char lead, unsigned char second) {
  if (lead == 0xE0) return second >= 0xA0 && second < 0xC0;
  if (lead == 0xED) return second >= 0x80 && second < 0xA0;
  if (lead == 0xF0) return second >= 0x90 && second < 0xC0;
  if (lead == 0xF4) return second >= 0x80 && second < 0x90;
  return second >= 0x80 && second < 0xC0;
}

// The bytes at the front of a text: a whole character, the beginning of one that the end of the
// text cuts off, or neither.
struct Character {
  size_t size;
  bool is_valid;
  bool is_cut_off;
};

Character FirstCharacter(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = LengthOf(byte(0));
  if (length == 0) return {1, false, false};
  size_t size = 1;
  for (; size < length; ++size) {
    if (size == text.size()) return {size, false, true};
    const bool fits = size == 1 ? MayFollow(byte(0), byte(1)) : (byte(size) & 0xC0) == 0x80;
    if (!fits) return {size, false, false};
  }
  return {length, true, false};
}

// Appends `text` with a replacement for what is no character, and returns the size of a beginning
// of a character at its end, which is not appended.
size_t AppendCharacters(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    if (first.is_cut_off) return text.size();
    out += first.is_valid ? text.substr(0, first.size) : kReplacement;
    text.remove_prefix(first.size);
  }
  return 0;
}

}  // namespace

TextFilter::TextFilter(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    Stop stop{.text = std::move(text), .borders = {}};
    stop.borders.assign(stop.text.size(), 0);
    size_t border = 0;
    for (size_t i = 1; i < stop.text.size(); ++i) {
      while (border > 0 && stop.text[i] != stop.text[border]) border = stop.borders[border - 1];
      if (stop.text[i] == stop.text[border]) ++border;
      stop.borders[i] = border;
    }
    stops_.push_back(std::move(stop));
  }
}

bool TextFilter::Step(Stop& stop, char c) {
  while (stop.matched > 0 && stop.text[stop.matched] != c) {
    stop.matched = stop.borders[stop.matched - 1];
  }
  if (stop.text[stop.matched] == c) ++stop.matched;
  return stop.matched == stop.text.size();
}

void TextFilter::Push(std::string_view piece, std::string& out) {
  if (stopped_) return;
  const size_t begin = held_.size();
  held_ += piece;
  for (size_t i = begin; i < held_.size() && !stops_.empty(); ++i) {
    size_t longest = 0;  // of the sequences that end with this byte
    for (Stop& stop : stops_) {
      if (Step(stop, held_[i])) longest = std::max(longest, stop.text.size());
    }
    if (longest == 0) continue;
    stopped_ = true;
    Release(i + 1 - longest, out);
    held_.clear();
    return;
  }
  size_t kept = 0;
  for (const Stop& stop : stops_) kept = std::max(kept, stop.matched);
  Release(held_.size() - kept, out);
}

void TextFilter::Release(size_t size, std::string& out) {
  if (size == 0) return;
  partial_.append(held_, 0, size);
  held_.erase(0, size);
  const size_t rest = AppendCharacters(partial_, out);
  partial_.erase(0, partial_.size() - rest);
}

void TextFilter::Finish(std::string& out) {
  Release(held_.size(), out);
  if (!partial_.empty()) out += kReplacement;
  partial_.clear();
}

std::string CleanText(std::string_view text) {
  TextFilter filter;
  std::string clean;
  filter.Push(text, clean);
  filter.Finish(clean);
  return clean;
}

}  // namespace nereid::openai
