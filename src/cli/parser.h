// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of a command. parser.cc is the only file that includes the library that does
// so (CLI11), because that takes seconds to compile.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace nereid::cli {

// The outcome of Parse, besides the values that were set.
struct ParsedArguments {
  bool wants_help = false;  // nothing else is checked then
};

// Sets the values of the command from its environment variables and then from `arguments`, which do
// not include the names of program and command. The error is for people: the argument, what was
// expected, and the option that was probably meant.
base::Result<ParsedArguments> Parse(const Command& command, std::vector<std::string> arguments);

}  // namespace nereid::cli
