// SPDX-License-Identifier: Apache-2.0
// Everything wrong with one configuration, collected so that its author reads it all at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nereid::config {

// One fault. `text` is the sentence clients of Triton know; the rest tells where it is and what
// would be right, and is left out of the message when `field` is empty.
struct ConfigError {
  base::StatusCode code = base::StatusCode::kInvalidArgument;
  std::string text;
  std::string field;     // "input[0].dims"
  std::string found;     // "[ 0 ]"
  std::string expected;  // "dimensions >= 1, or -1"
};

// Faults in the order they were found, each once. Thread-compatible.
class ErrorList {
 public:
  // Ignored when the same text about the same field is already there.
  void Add(ConfigError error);
  void Append(const ErrorList& other);

  bool empty() const { return errors_.empty(); }
  const std::vector<ConfigError>& errors() const { return errors_; }

  // Success when empty. Otherwise the code of the first error, its text as the first line, and then
  // the others, each followed by an indented line "<file>: <field>: found <...>, expected <...>".
  base::Status ToStatus(std::string_view file) const;

 private:
  std::vector<ConfigError> errors_;
};

}  // namespace nereid::config
