// SPDX-License-Identifier: Apache-2.0
// A position in JSON text, for the quick reader. One pass, without preparation or memory. Every
// method that cannot proceed returns false or nothing, and the cursor is unusable afterwards:
// whatever is malformed, out of range or merely unusual is left to the exact reader. Private to
// this module.
//
//   cursor.Object<"name", "shape">([&](int member, std::string_view key) {
//     switch (member) {
//       case 0: ... takes the value ...; return true;
//       case 1: ...
//       default: return cursor.Skip();
//     }
//   });
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace nereid::http {

// The name of a member as a template argument, stored as it usually appears in the text: with
// quotes and a colon.
template <size_t size>
struct JsonKey {
  consteval JsonKey(const char (&name)[size]) {
    quoted[0] = '"';
    std::copy_n(name, size - 1, quoted.begin() + 1);
    quoted[size] = '"';
    quoted[size + 1] = ':';
  }
  std::string_view name() const { return {quoted.data() + 1, size - 1}; }

  std::array<char, size + 2> quoted{};
};

// Thread-compatible; the text outlives it.
class JsonCursor {
 public:
  // Values that are nested deeper than this are not read.
  static constexpr int kMaxDepth = 100;

  explicit JsonCursor(std::string_view text)
      : next_(text.data()), end_(text.data() + text.size()) {}

  bool IsAtEnd() {
    SkipSpace();
    return next_ == end_;
  }

  // Returns the first character of the next value or sign; zero at the end.
  char Peek() {
    SkipSpace();
    return next_ == end_ ? '\0' : *next_;
  }

  // Takes `c`, and blanks before it.
  bool Take(char c) {
    if (next_ != end_ && *next_ == c) [[likely]] {
      ++next_;
      return true;
    }
    return TakeAfterSpace(c);
  }

  // Takes a string without escapes, as a view of the text. For names: AppendText is faster for long
  // texts.
  std::optional<std::string_view> Text() {
    if (!Take('"')) return std::nullopt;
    const char* const begin = next_;
    for (; next_ != end_; ++next_) {
      if (!EndsText(*next_)) continue;
      if (*next_ != '"') return std::nullopt;
      return std::string_view(begin, static_cast<size_t>(next_++ - begin));
    }
    return std::nullopt;
  }

  // Applies `step` to a copy of the cursor, and returns its result. A cursor that no function
  // outside its caller has seen stays in registers, which halves the cost of short texts.
  template <typename Step>
  auto Aside(const Step& step) {
    JsonCursor copy = *this;
    auto result = step(copy);
    *this = copy;
    return result;
  }

  // Takes any string: appends it to `out`, with its escapes resolved.
  bool AppendText(std::string& out) {
    return Aside([&out](JsonCursor& cursor) { return cursor.AppendAnyText(out); });
  }

  // Takes a non-negative integer, or the beginning of a number that is not one.
  std::optional<uint64_t> Unsigned() {
    SkipSpace();
    return Digits();
  }

  // Takes an integer, or the beginning of a number that is not one.
  std::optional<int64_t> Signed() {
    SkipSpace();
    const bool is_negative = next_ != end_ && *next_ == '-';
    if (is_negative) ++next_;
    const auto digits = Digits();
    const uint64_t limit = uint64_t{INT64_MAX} + (is_negative ? 1 : 0);
    if (!digits || *digits > limit) return std::nullopt;
    return static_cast<int64_t>(is_negative ? 0 - *digits : *digits);
  }

  // Returns whether a number that Unsigned or Signed took has no fraction and no exponent.
  bool IsAtEndOfNumber() const {
    return next_ == end_ || (*next_ != '.' && *next_ != 'e' && *next_ != 'E');
  }

  // Takes a number, as the nearest double.
  std::optional<double> Double() {
    return Aside([](JsonCursor& cursor) { return cursor.AnyDouble(); });
  }

  std::optional<bool> Flag() {
    SkipSpace();
    const std::string_view rest(next_, static_cast<size_t>(end_ - next_));
    const bool flag = rest.starts_with("true");
    if (!flag && !rest.starts_with("false")) return std::nullopt;
    next_ += flag ? 4 : 5;
    return flag;  // the caller's next step checks what follows
  }

  // Skips a value of any type.
  bool Skip() {
    return Aside([](JsonCursor& cursor) { return cursor.SkipNested(0); });
  }

  // Calls `member(index, key)`, which takes the value, for each member of an object; `index` is
  // that of the key in `kKeys`, or -1.
  template <JsonKey... kKeys, typename Member>
  bool Object(const Member& member) {
    if (!Take('{')) return false;
    char separator = '\0';
    if (Take('}')) return true;
    do {
      std::string_view key;
      const int index = Key<kKeys...>(key);
      if (index == kNoKey || !member(index, key)) return false;
      separator = TakeSeparator('}');
    } while (separator == ',');
    return separator == '}';
  }

  // Calls `element()`, which takes the element, for each element of an array.
  template <typename Element>
  bool Array(const Element& element) {
    if (!Take('[')) return false;
    char separator = '\0';
    if (Take(']')) return true;
    do {
      if (!element()) return false;
      separator = TakeSeparator(']');
    } while (separator == ',');
    return separator == ']';
  }

 private:
  static constexpr int kOtherKey = -1;
  static constexpr int kNoKey = -2;

  // Returns whether no string contains the character unescaped: quotes, backslashes and control
  // characters.
  static bool EndsText(char c) {
    static constexpr auto kEndsText = [] {
      std::array<bool, 256> ends{};
      std::fill_n(ends.begin(), size_t{' '}, true);
      ends['"'] = ends['\\'] = true;
      return ends;
    }();
    return kEndsText[static_cast<unsigned char>(c)];
  }

  // Returns more than nine if the character is no digit.
  static unsigned DigitOf(char c) { return static_cast<unsigned char>(c) - unsigned{'0'}; }

  static bool IsSpace(char c) {
    return static_cast<unsigned char>(c) <= ' ' &&
           (c == ' ' || c == '\n' || c == '\r' || c == '\t');
  }

  void SkipSpace() {
    while (next_ != end_ && IsSpace(*next_)) ++next_;
  }

  bool TakeAfterSpace(char c) {
    if (next_ == end_ || !IsSpace(*next_)) return false;
    SkipSpace();
    if (next_ == end_ || *next_ != c) return false;
    ++next_;
    return true;
  }

  // Takes what follows an element: a comma, or `close`, which ends the list. Returns zero for
  // anything else.
  char TakeSeparator(char close) {
    do {
      if (next_ == end_) return '\0';
      const char c = *next_++;
      if (c == ',') return ',';
      if (c == close) return close;
    } while (IsSpace(next_[-1]));
    return '\0';
  }

  // Takes the integer of some digits. If they are part of another number, the caller's next step
  // does not find the end of a value.
  std::optional<uint64_t> Digits() {
    const char* const begin = next_;
    uint64_t number = 0;
    for (; next_ != end_; ++next_) {
      const unsigned digit = DigitOf(*next_);
      if (digit > 9) break;
      number = number * 10 + digit;
    }
    const ptrdiff_t digits = next_ - begin;
    // Nineteen digits always fit.
    if (digits == 0 || digits > 19 || (*begin == '0' && digits > 1)) [[unlikely]]
      return LongNumber(begin);
    return number;
  }

  // Returns whether the text, which is long enough for it, continues with that key as it is usually
  // written.
  template <JsonKey kKey>
  static bool IsKey(const char* next) {
    // Names of members of one object mostly differ in their first letters.
    return next[1] == kKey.quoted[1] &&
           std::memcmp(next, kKey.quoted.data(), kKey.quoted.size()) == 0;
  }

  // Takes a key and its colon.
  template <JsonKey... kKeys>
  int Key(std::string_view& key) {
    constexpr size_t kMaxKeyLength = std::max({size_t{0}, kKeys.quoted.size()...});
    const char* const next = next_;
    int index = 0;
    [[maybe_unused]] const auto take = [&]<JsonKey kKey>() {
      if (!IsKey<kKey>(next)) {
        ++index;
        return false;
      }
      next_ = next + kKey.quoted.size();
      return true;
    };
    if (static_cast<size_t>(end_ - next) >= kMaxKeyLength) [[likely]] {
      if ((take.template operator()<kKeys>() || ...)) return index;
    }
    const auto text = Aside([](JsonCursor& cursor) { return cursor.OtherKey(); });
    if (!text) return kNoKey;
    key = *text;
    index = 0;
    [[maybe_unused]] const auto is_it = [&](std::string_view name) {
      if (name == *text) return true;
      ++index;
      return false;
    };
    return (is_it(kKeys.name()) || ...) ? index : kOtherKey;
  }

  // Takes any key and its colon.
  std::optional<std::string_view> OtherKey();
  std::optional<uint64_t> LongNumber(const char* begin) const;
  void SkipPlainCharacters();
  bool AppendAnyText(std::string& out);
  bool AppendEscape(std::string& out);
  std::optional<double> AnyDouble();
  std::optional<uint32_t> FourHexDigits();
  bool SkipNested(int depth);

  const char* next_;
  const char* end_;
};

}  // namespace nereid::http
