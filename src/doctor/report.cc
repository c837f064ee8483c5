// SPDX-License-Identifier: Apache-2.0
#include "doctor/report.h"

#include <algorithm>

namespace nereid::doctor {

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kNote:
      return "note";
    case Level::kProblem:
      break;
  }
  return "problem";
}

std::string_view AreaOf(const Finding& finding) {
  const std::string_view id = finding.id;
  return id.substr(0, id.find('.'));
}

size_t Report::Count(Level level) const {
  return static_cast<size_t>(std::ranges::count(findings, level, &Finding::level));
}

}  // namespace nereid::doctor
