// SPDX-License-Identifier: Apache-2.0
#include "config/errors.h"

#include <algorithm>

#include <fmt/format.h>

namespace nereid::config {

void ErrorList::Add(ConfigError error) {
  const bool known = std::any_of(errors_.begin(), errors_.end(), [&](const ConfigError& e) {
    return e.text == error.text && e.field == error.field;
  });
  if (!known) errors_.push_back(std::move(error));
}

void ErrorList::Append(const ErrorList& other) {
  for (const ConfigError& error : other.errors_) Add(error);
}

base::Status ErrorList::ToStatus(std::string_view file) const {
  if (errors_.empty()) return base::OkStatus();
  std::string message;
  for (const ConfigError& error : errors_) {
    if (!message.empty()) message += '\n';
    message += error.text;
    if (error.field.empty()) continue;
    message += "\n  ";
    if (!file.empty()) message += fmt::format("{}: ", file);
    message += fmt::format("{}: found {}, expected {}", error.field, error.found, error.expected);
  }
  return {errors_.front().code, std::move(message)};
}

}  // namespace nereid::config
