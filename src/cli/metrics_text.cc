// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_text.h"

#include <map>

#include "base/trim.h"

namespace nereid::cli {
namespace {

// What may stand between the parts of a line.
constexpr std::string_view kSpaces = " \t";

// What the comments of the page say about a family.
struct Family {
  std::string type;
  std::string help;
};

// Splits at the first `separator`; all of the text is the first part if there is none.
std::pair<std::string_view, std::string_view> Split(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

// Reads `name="value",...}` up to the brace, which it removes as well. Returns false if the text is
// something else.
bool TakeLabels(std::string_view& text, MetricSample& sample) {
  while (!text.empty() && text.front() != '}') {
    const auto [name, behind] = Split(text, '=');
    const std::string_view rest = base::Trim(behind, kSpaces);
    if (!rest.starts_with('"')) return false;
    std::string value;
    size_t i = 1;
    for (; i < rest.size() && rest[i] != '"'; ++i) {
      if (rest[i] == '\\' && i + 1 < rest.size()) {
        ++i;
        value += rest[i] == 'n' ? '\n' : rest[i];
      } else {
        value += rest[i];
      }
    }
    if (i >= rest.size()) return false;
    sample.labels.emplace_back(base::Trim(name, kSpaces), std::move(value));
    text = base::Trim(rest.substr(i + 1), kSpaces);
    if (text.starts_with(',')) text = base::Trim(text.substr(1), kSpaces);
  }
  if (text.empty()) return false;
  text.remove_prefix(1);
  return true;
}

bool ReadSample(std::string_view line, MetricSample& sample) {
  line = base::Trim(line, kSpaces);
  const size_t end = line.find_first_of("{ \t");
  if (end == std::string_view::npos || end == 0) return false;
  sample.name = line.substr(0, end);
  line = base::Trim(line.substr(end), kSpaces);
  if (line.starts_with('{')) {
    line = base::Trim(line.substr(1), kSpaces);
    if (!TakeLabels(line, sample)) return false;
    line = base::Trim(line, kSpaces);
  }
  sample.value = line.substr(0, line.find_first_of(kSpaces));  // a time may follow
  return !sample.value.empty();
}

void ReadComment(std::string_view line, std::map<std::string, Family, std::less<>>& families) {
  const auto [kind, rest] = Split(line, ' ');
  const auto [name, text] = Split(rest, ' ');
  if (kind == "TYPE") families[std::string(name)].type = text;
  if (kind == "HELP") families[std::string(name)].help = text;
}

// The lines of histograms and summaries have names of their own.
std::string_view FamilyOf(std::string_view name,
                          const std::map<std::string, Family, std::less<>>& families) {
  if (families.contains(name)) return name;
  for (const std::string_view end : {"_bucket", "_sum", "_count"}) {
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return name;
}

}  // namespace

std::string_view MetricSample::label(std::string_view name) const {
  for (const auto& [one, value] : labels) {
    if (one == name) return value;
  }
  return {};
}

std::vector<MetricSample> ReadMetrics(std::string_view page) {
  std::map<std::string, Family, std::less<>> families;
  std::vector<MetricSample> samples;
  while (!page.empty()) {
    const auto [whole, rest] = Split(page, '\n');
    page = rest;
    std::string_view line = whole;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("# ")) {
      ReadComment(line.substr(2), families);
      continue;
    }
    MetricSample sample;
    if (!ReadSample(line, sample)) continue;
    if (const auto family = families.find(FamilyOf(sample.name, families));
        family != families.end()) {
      sample.type = family->second.type;
      sample.help = family->second.help;
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace nereid::cli
