// SPDX-License-Identifier: Apache-2.0
// What a check of a model repository finds: the kinds of mistakes, and mistakes with their places.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::check {

// An error keeps a model from being loaded. A warning is something that the server does not do as
// its author probably expects, or slowly. A note is worth knowing and may be meant so.
enum class Severity { kError, kWarning, kNote };

// "error", "warning" or "note".
std::string_view SeverityName(Severity severity);

// A kind of mistake. Its code never changes, because scripts ignore or look for it.
struct Kind {
  std::string_view code;
  Severity severity;
  std::string_view what;    // one sentence for the documentation
  std::string_view advice;  // what to do, where the place itself suggests nothing better
};

// Returns all kinds, in the order of docs/check.md.
std::span<const Kind> Kinds();
// Returns the kind of this code, or "refused" if there is none.
const Kind& FindKind(std::string_view code);

// One mistake.
struct Finding {
  std::string_view code;
  Severity severity = Severity::kError;
  std::string model;  // empty if it concerns no single model
  std::string file;   // the file or folder
  int line = 0;       // from 1; 0 for a whole file or folder
  int column = 0;     // from 1
  std::string field;  // of the configuration; may be empty
  std::string text;   // what is wrong, in the words of the server where it refuses the model
  std::string found;  // may be empty
  std::string expected;
  std::string suggestion;

  bool operator==(const Finding&) const = default;
};

// The result of a check.
struct Report {
  std::vector<Finding> findings;  // by file and place
  size_t models = 0;              // how many were checked

  size_t Count(Severity severity) const;
};

}  // namespace nereid::check
