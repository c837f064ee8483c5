// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <utility>

#include "http1/http_head_parser.h"

namespace nereid::http1 {
namespace {

enum CharacterClass : uint8_t { kName = 1, kTarget = 2 };

consteval std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<size_t>(c)] = kName | kTarget;
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<size_t>(c)] = kName | kTarget;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<size_t>(c)] = kName | kTarget;
  for (const unsigned char c : {'-', '_'}) classes[c] = kName | kTarget;
  for (const unsigned char c : {'/', '.', '~', '%', '?', '=', '&', ':', ',', '+', '@'}) {
    classes[c] |= kTarget;
  }
  return classes;
}

constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

bool Is(CharacterClass what, char c) {
  return (kClasses[static_cast<unsigned char>(c)] & what) != 0;
}

// Compares names; `lower` consists of lower-case letters and hyphens.
bool IsNamed(std::string_view name, std::string_view lower) {
  if (name.size() != lower.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if ((name[i] | 0x20) != lower[i]) return false;  // a hyphen is not changed
  }
  return true;
}

// Returns the first byte from `at` on that is not one of `what`. Looks at four before it compares
// with the end again, which would take as long as looking at a byte.
template <CharacterClass what>
const char* Skip(const char* at, const char* end) {
  for (; end - at >= 4; at += 4) {
    if (!Is(what, at[0])) return at;
    if (!Is(what, at[1])) return at + 1;
    if (!Is(what, at[2])) return at + 2;
    if (!Is(what, at[3])) return at + 3;
  }
  while (at != end && Is(what, *at)) ++at;
  return at;
}

// Returns the end of the visible ASCII and spaces from `at` on.
const char* SkipPlain(const char* at, const char* end) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHigh = 0x80 * kOnes;
  while (end - at >= 8) {
    uint64_t eight;
    std::memcpy(&eight, at, 8);
    const uint64_t below_space = (eight - 0x20 * kOnes) & ~eight;
    const uint64_t is_delete = ((eight ^ 0x7f * kOnes) - kOnes) & ~(eight ^ 0x7f * kOnes);
    if (((eight | below_space | is_delete) & kHigh) != 0) break;
    at += 8;
  }
  while (at != end && *at >= ' ' && *at <= '~') ++at;
  return at;
}

}  // namespace

// Every step returns false if the head is not plain.
class HttpHeadParser::Plain {
 public:
  Plain(std::string_view data, HttpHead& head)
      : begin_(data.data()), at_(begin_), end_(begin_ + data.size()), head_(head) {}

  size_t Read() {
    head_.version_ = 11;
    head_.headers_.clear();
    head_.content_length_.reset();
    head_.chunked_ = head_.expect_continue_ = false;
    head_.keep_alive_ = true;
    if (!ReadRequestLine()) return 0;
    while (at_ != end_ && *at_ != '\r') {
      if (!ReadField()) return 0;
    }
    return TakeLineEnd() && has_host_ ? static_cast<size_t>(at_ - begin_) : 0;
  }

 private:
  bool Take(std::string_view text) {
    if (static_cast<size_t>(end_ - at_) < text.size()) return false;
    if (std::memcmp(at_, text.data(), text.size()) != 0) return false;
    at_ += text.size();
    return true;
  }
  bool TakeLineEnd() { return Take("\r\n"); }

  bool ReadRequestLine() {
    if (Take("POST /")) {
      head_.method_ = HttpMethod::kPost;
      head_.method_text_ = {begin_, 4};
    } else if (Take("GET /")) {
      head_.method_ = HttpMethod::kGet;
      head_.method_text_ = {begin_, 3};
    } else {
      return false;
    }
    const char* const target = at_ - 1;
    at_ = Skip<kTarget>(at_, end_);
    head_.target_ = {target, static_cast<size_t>(at_ - target)};
    return Take(" HTTP/1.1\r\n");
  }

  bool ReadField() {
    const char* const name_begin = at_;
    at_ = Skip<kName>(at_, end_);
    const std::string_view name(name_begin, static_cast<size_t>(at_ - name_begin));
    if (name.empty() || at_ == end_ || *at_ != ':') return false;
    ++at_;
    while (at_ != end_ && *at_ == ' ') ++at_;
    const char* const value_begin = at_;
    at_ = SkipPlain(at_, end_);
    const char* value_end = at_;
    while (value_end != value_begin && value_end[-1] == ' ') --value_end;
    const std::string_view value(value_begin, static_cast<size_t>(value_end - value_begin));
    if (!TakeLineEnd() || head_.headers_.size() == HttpHead::kMaxHeaders) return false;
    head_.headers_.push_back({name, value});
    return Note(name, value);
  }

  bool Note(std::string_view name, std::string_view value) {
    switch (name.size()) {
      case 4:
        return !IsNamed(name, "host") || !std::exchange(has_host_, true);
      case 14:
        return !IsNamed(name, "content-length") || ReadLength(value);
      case 10:
        return !IsNamed(name, "connection") || ReadConnection(value);
      case 17:
        return !IsNamed(name, "transfer-encoding");
      case 16:
        return !IsNamed(name, "proxy-connection");
      case 6:
        return !IsNamed(name, "expect");
      case 7:
        return !IsNamed(name, "upgrade");
      default:
        return true;
    }
  }

  bool ReadLength(std::string_view value) {
    if (head_.content_length_.has_value() || value.empty() || value.size() > 18) return false;
    uint64_t length = 0;
    for (const char c : value) {
      if (c < '0' || c > '9') return false;
      length = length * 10 + static_cast<uint64_t>(c - '0');
    }
    head_.content_length_ = length;
    return true;
  }

  bool ReadConnection(std::string_view value) {
    if (std::exchange(has_connection_, true)) return false;
    if (IsNamed(value, "close")) head_.keep_alive_ = false;
    return !head_.keep_alive_ || IsNamed(value, "keep-alive");
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  HttpHead& head_;
  bool has_connection_ = false;
  bool has_host_ = false;
};

size_t HttpHeadParser::ReadPlain(std::string_view data, size_t max_header_bytes, HttpHead& head) {
  return Plain(data.substr(0, max_header_bytes), head).Read();
}

}  // namespace nereid::http1
