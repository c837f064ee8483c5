// SPDX-License-Identifier: Apache-2.0
#include "check/finding.h"

#include <algorithm>

namespace nereid::check {

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "";
}

const Kind& FindKind(std::string_view code) {
  const auto found = std::ranges::find(Kinds(), code, &Kind::code);
  return found == Kinds().end() ? *std::ranges::find(Kinds(), "refused", &Kind::code) : *found;
}

size_t Report::Count(Severity severity) const {
  return static_cast<size_t>(std::ranges::count(findings, severity, &Finding::severity));
}

}  // namespace nereid::check
