// SPDX-License-Identifier: Apache-2.0
// The table of flags: name, form of the value, description and effect.
#pragma once

#include <span>
#include <string_view>

#include "app/options.h"
#include "base/status.h"

namespace nereid::app {

// A row of the table of flags.
struct Flag {
  std::string_view name;   // without the dashes
  std::string_view value;  // the form of the value, e.g. "<integer>"; empty: no value
  std::string_view help;
  base::Status (*apply)(std::string_view value, Options& options);
  bool is_secret = false;  // the value appears in no message
};

// A heading and its flags.
struct FlagGroup {
  std::string_view title;
  std::span<const Flag> flags;
};

std::span<const FlagGroup> AllFlags();

}  // namespace nereid::app
