// SPDX-License-Identifier: Apache-2.0
// The help texts of commands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace nereid::cli {

// What an argument is called where it is explained: "--watch, -w [SECONDS]".
std::string ArgumentTitle(const Argument& argument);

// "nereid models [options]", "nereid infer MODEL [options]".
std::string UsageLine(const Command& command);

// Returns `help` with what is known about the values: choices, default, environment variable.
std::string ArgumentHelp(const Argument& argument);

// The width of help texts: that of the terminal, within limits; 80 where there is none.
size_t HelpWidth(const Output& output);

// The text of `nereid COMMAND --help`, in lines of at most `width` columns.
std::string CommandHelp(const Command& command, size_t width);

// Appends the words of `text` in lines of at most `width` columns that begin with `indent` spaces.
void AppendWrapped(std::string& out, std::string_view text, size_t indent, size_t width);

}  // namespace nereid::cli
