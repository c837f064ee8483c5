// SPDX-License-Identifier: Apache-2.0
// The list of all errors of one configuration, so that its author sees them at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nereid::config {

// One error. `text` is the sentence that clients of Triton know. The other fields tell where it is
// and what would be right; they are left out of the message if `field` is empty.
struct ConfigError {
  base::StatusCode code = base::StatusCode::kInvalidArgument;
  std::string text;
  std::string field;     // "input[0].dims"
  std::string found;     // "[ 0 ]"
  std::string expected;  // "dimensions >= 1, or -1"
  // The kind of mistake, a name that never changes and is not part of the message; docs/check.md
  // lists them.
  std::string_view kind = {};
};

// Errors in the order in which they were found, without repetitions. Thread-compatible.
class ErrorList {
 public:
  // Ignored if an error with the same text and field is already in the list.
  void Add(ConfigError error);
  void Append(const ErrorList& other);

  bool empty() const { return errors_.empty(); }
  const std::vector<ConfigError>& errors() const { return errors_; }

  // Returns success if the list is empty. Otherwise the code is that of the first error, and the
  // message has its text in the first line and then the others, each followed by an indented line
  // "<file>: <field>: found <...>, expected <...>".
  base::Status ToStatus(std::string_view file) const;

 private:
  std::vector<ConfigError> errors_;
};

}  // namespace nereid::config
