// SPDX-License-Identifier: Apache-2.0
#include "cli/config_edit.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "config/text_diagnosis.h"

namespace nereid::cli {
namespace {

// The lines around a change in a patch.
constexpr size_t kContext = 3;

// Returns the offset of a place. Its column counts a tab as what it takes up to the next multiple
// of eight, as protobuf does.
size_t OffsetOf(std::string_view text, const config::TextPlace& place) {
  size_t at = 0;
  for (int line = 1; line < place.line; ++line) at = text.find('\n', at) + 1;
  for (int column = 1; column < place.column && at < text.size(); ++at) {
    column = text[at] == '\t' ? (column - 1) / 8 * 8 + 9 : column + 1;
  }
  return at;
}

// Returns the end of the spaces and comments that begin at `at`.
size_t SpaceEnd(std::string_view text, size_t at) {
  while (at < text.size() &&
         (std::isspace(static_cast<unsigned char>(text[at])) != 0 || text[at] == '#')) {
    at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
  }
  return at;
}

bool IsQuoteAt(std::string_view text, size_t at) {
  return at < text.size() && (text[at] == '"' || text[at] == '\'');
}

// Returns the end of the number, word or quoted text that begins at `at`. Quoted texts behind each
// other are one text.
size_t ValueEnd(std::string_view text, size_t at) {
  if (!IsQuoteAt(text, at)) {
    if (text[at] == '-') at = SpaceEnd(text, at + 1);
    return std::min(text.find_first_of(" \t\r\n,;:}]>#", at), text.size());
  }
  size_t end = at;
  for (; IsQuoteAt(text, at); at = SpaceEnd(text, end)) {
    const char quote = text[at];
    for (++at; at < text.size() && text[at] != quote; ++at) at += text[at] == '\\' ? 1 : 0;
    end = std::min(at + 1, text.size());
  }
  return end;
}

// Returns where the bracket is that opens the message at `at`, which is that of its name or of the
// bracket itself.
size_t BracketAfter(std::string_view text, size_t at) {
  while (at < text.size() && text[at] != '{' && text[at] != '<') {
    at = text[at] == '#' ? SpaceEnd(text, at) : at + 1;
  }
  return at;
}

std::string Append(std::string text, std::string_view block) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text.append(block);
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// A line of a patch: kept (' '), removed ('-') or added ('+').
struct DiffLine {
  char kind;
  std::string_view text;
};

// Aligns the lines by their longest common subsequence.
std::vector<DiffLine> Align(const std::vector<std::string_view>& a,
                            const std::vector<std::string_view>& b) {
  std::vector<std::vector<uint32_t>> common(a.size() + 1, std::vector<uint32_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t k = b.size(); k-- > 0;) {
      common[i][k] =
          a[i] == b[k] ? common[i + 1][k + 1] + 1 : std::max(common[i + 1][k], common[i][k + 1]);
    }
  }
  std::vector<DiffLine> lines;
  size_t i = 0;
  size_t k = 0;
  while (i < a.size() || k < b.size()) {
    if (i < a.size() && k < b.size() && a[i] == b[k]) {
      lines.push_back({' ', a[i++]});
      ++k;
    } else if (k == b.size() || (i < a.size() && common[i + 1][k] >= common[i][k + 1])) {
      lines.push_back({'-', a[i++]});
    } else {
      lines.push_back({'+', b[k++]});
    }
  }
  return lines;
}

// Appends the lines from `begin` to `end`. `before` and `after` are the numbers of lines of both
// files in front of them.
void AppendHunk(std::string& out, const std::vector<DiffLine>& lines, size_t begin, size_t end,
                size_t before, size_t after) {
  size_t removed = 0;
  size_t added = 0;
  std::string body;
  for (size_t i = begin; i < end; ++i) {
    removed += lines[i].kind != '+' ? 1 : 0;
    added += lines[i].kind != '-' ? 1 : 0;
    body += lines[i].kind;
    body += lines[i].text;
    if (!lines[i].text.ends_with('\n')) body += "\n\\ No newline at end of file\n";
  }
  // A part of no lines is said to be behind the line before it.
  out += fmt::format("@@ -{},{} +{},{} @@\n{}", before + (removed > 0 ? 1 : 0), removed,
                     after + (added > 0 ? 1 : 0), added, body);
}

}  // namespace

std::string SetConfigField(std::string text, std::string_view parent, std::string_view field,
                           std::string_view value, std::string_view block) {
  const config::TextPlaces places = config::TextPlaces::Read(text);
  const std::string path =
      parent.empty() ? std::string(field) : fmt::format("{}.{}", parent, field);
  if (places.Has(path)) {
    const size_t at = OffsetOf(text, *places.Find(path));
    return text.replace(at, ValueEnd(text, at) - at, value);
  }
  if (parent.empty() || !places.Has(parent)) return Append(std::move(text), block);
  const size_t brace = BracketAfter(text, OffsetOf(text, *places.Find(parent)));
  if (brace == text.size()) return Append(std::move(text), block);
  const bool has_space = brace + 1 < text.size() && std::isspace(text[brace + 1]) != 0;
  return text.insert(brace + 1, fmt::format(" {}: {}{}", field, value, has_space ? "" : " "));
}

std::string SetConfigParameter(std::string text, std::string_view key, std::string_view value) {
  // As a field of the configuration rather than of the entry: an entry without a text has no place
  // for one that is certain to be found, and of two entries with the same key the last one counts.
  return SetConfigField(
      std::move(text), "", fmt::format("parameters['{}'].string_value", key),
      fmt::format("\"{}\"", value),
      fmt::format("parameters {{\n  key: \"{}\"\n  value {{ string_value: \"{}\" }}\n}}\n", key,
                  value));
}

std::string UnifiedDiff(std::string_view before, std::string_view after, std::string_view path) {
  if (before == after) return {};
  const std::vector<DiffLine> lines = Align(LinesOf(before), LinesOf(after));
  std::string out =
      before.empty() ? std::string("--- /dev/null\n") : fmt::format("--- a/{}\n", path);
  out += fmt::format("+++ b/{}\n", path);
  size_t line_before = 0;
  size_t line_after = 0;
  size_t done = 0;  // lines in earlier hunks, or passed over
  for (size_t i = 0; i < lines.size();) {
    if (lines[i].kind == ' ') {
      ++i;
      continue;
    }
    const size_t begin = std::max(done, i - std::min(i, kContext));
    for (; done < begin; ++done) {
      ++line_before;
      ++line_after;
    }
    // Changes whose context would touch are one hunk.
    size_t last = i;
    for (size_t k = i; k < lines.size() && k <= last + 2 * kContext; ++k) {
      if (lines[k].kind != ' ') last = k;
    }
    const size_t end = std::min(last + kContext + 1, lines.size());
    AppendHunk(out, lines, begin, end, line_before, line_after);
    for (; done < end; ++done) {
      line_before += lines[done].kind != '+' ? 1 : 0;
      line_after += lines[done].kind != '-' ? 1 : 0;
    }
    i = end;
  }
  return out;
}

}  // namespace nereid::cli
