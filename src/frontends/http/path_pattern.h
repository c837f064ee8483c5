// SPDX-License-Identifier: Apache-2.0
// The path of a route as a pattern:
//
//   /v2/models/{model}[/versions/{version}]/infer
//
// {model}, {region} and {repository} stand for one or more UTF-8 characters other than a slash;
// {version} stands for digits, or for a label: a letter or underscore, then letters, digits, '_',
// '-' and '.'. A part in brackets, which ends with a field, may be absent. The
// compiler parses patterns, so that matching compares with constants. Private to this module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/route.h"

namespace nereid::http {

// An immutable value.
class PathPattern {
 public:
  enum class Field : uint8_t { kNone, kModel, kVersion, kRegion, kRepository };
  // A literal text and the field after it.
  struct Part {
    std::string_view literal;
    Field field = Field::kNone;
    bool is_optional = false;
  };

  // `text` is a literal; an invalid pattern does not compile.
  consteval PathPattern(const char* text) : text_(text) {
    std::string_view rest = text_;
    while (!rest.empty()) parts_[count_++] = TakePart(rest);
  }

  constexpr std::string_view text() const { return text_; }
  constexpr size_t part_count() const { return count_; }
  constexpr const Part& part(size_t i) const { return parts_[i]; }

 private:
  static consteval Part TakePart(std::string_view& rest) {
    Part part;
    part.is_optional = rest.front() == '[';
    if (part.is_optional) rest.remove_prefix(1);
    part.literal = rest.substr(0, rest.find_first_of("{["));
    rest.remove_prefix(part.literal.size());
    if (!rest.empty() && rest.front() == '{') {
      part.field = TakeField(rest.substr(1, rest.find('}') - 1));
      rest.remove_prefix(rest.find('}') + 1);
    }
    if (part.is_optional) {
      if (part.field == Field::kNone || rest.front() != ']') throw "brackets end with a field";
      rest.remove_prefix(1);
    }
    return part;
  }

  static consteval Field TakeField(std::string_view name) {
    if (name == "model") return Field::kModel;
    if (name == "version") return Field::kVersion;
    if (name == "region") return Field::kRegion;
    if (name == "repository") return Field::kRepository;
    throw "no such field";
  }

  std::string_view text_;
  std::array<Part, 4> parts_{};
  size_t count_ = 0;
};

// TakeSegment and TakeVersion take the value of a field from the front of `path`; they return false
// if there is none.
bool TakeSegment(std::string_view& path, std::string_view& segment);
bool TakeVersion(std::string_view& path, Route& route);

template <PathPattern::Field kField>
bool TakeField(std::string_view& path, Route& route) {
  using Field = PathPattern::Field;
  if constexpr (kField == Field::kNone) return true;
  if constexpr (kField == Field::kModel) return TakeSegment(path, route.model);
  if constexpr (kField == Field::kVersion) return TakeVersion(path, route);
  if constexpr (kField == Field::kRegion) return TakeSegment(path, route.region);
  route.names_repository = true;
  std::string_view name;  // the name is not used
  return TakeSegment(path, name);
}

// Returns whether `Pattern::kPattern` from part `i` on matches the whole of `path`. If so, its
// fields are set in `route`, which must be empty; otherwise they are unspecified.
template <typename Pattern, size_t i = 0>
bool MatchesPath(std::string_view path, Route& route) {
  if constexpr (i == Pattern::kPattern.part_count()) {
    return path.empty();
  } else {
    constexpr PathPattern::Part kPart = Pattern::kPattern.part(i);
    const bool has_literal = path.starts_with(kPart.literal);
    const auto matches_with_part = [&] {
      std::string_view rest = path.substr(kPart.literal.size());
      return TakeField<kPart.field>(rest, route) && MatchesPath<Pattern, i + 1>(rest, route);
    };
    if constexpr (!kPart.is_optional) {
      return has_literal && matches_with_part();
    } else {
      if (has_literal) {
        if (matches_with_part()) return true;
        route = {.model = route.model};
      }
      // Skips the optional part.
      return MatchesPath<Pattern, i + 1>(path, route);
    }
  }
}

}  // namespace nereid::http
