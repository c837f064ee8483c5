// SPDX-License-Identifier: Apache-2.0
// What an examination of the machine has found, as plain data.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nereid::doctor {

// A note is worth knowing, and often as it should be; a problem keeps something from working.
enum class Level { kOk, kNote, kProblem };

// Returns "ok", "note" or "problem".
std::string_view LevelName(Level level);

// One thing that was looked at.
struct Finding {
  std::string id;  // AREA.SUBJECT, for programs: "ports.http"
  Level level = Level::kOk;
  std::string text;    // what was found
  std::string advice;  // what to do about it; empty if there is nothing to do
};

// Returns the area of a finding: "ports".
std::string_view AreaOf(const Finding& finding);

// All that was found. Thread-compatible.
struct Report {
  std::vector<Finding> findings;                              // those of an area together
  std::vector<std::pair<std::string, std::string>> versions;  // of software and hardware, by name

  void Ok(std::string id, std::string text) {
    findings.push_back({std::move(id), Level::kOk, std::move(text), {}});
  }
  void Note(std::string id, std::string text, std::string advice) {
    findings.push_back({std::move(id), Level::kNote, std::move(text), std::move(advice)});
  }
  void Problem(std::string id, std::string text, std::string advice) {
    findings.push_back({std::move(id), Level::kProblem, std::move(text), std::move(advice)});
  }
  size_t Count(Level level) const;
};

}  // namespace nereid::doctor
