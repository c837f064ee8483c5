// SPDX-License-Identifier: Apache-2.0
// Scripts by which shells complete commands, options and values. All are made from the same
// description of the commands.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/invocation.h"

namespace nereid::cli {

// What is completed: all commands, and the flags of the server.
struct CompletionInput {
  std::vector<std::unique_ptr<Command>> commands;
  std::vector<ServerFlag> flags;
};

std::string BashCompletion(const CompletionInput& input);
std::string ZshCompletion(const CompletionInput& input);
std::string FishCompletion(const CompletionInput& input);

// The command line by which the scripts ask a server for the names of its models. It says nothing
// if there is no server.
inline constexpr const char* kListModels = "nereid models --names --timeout 1s 2>/dev/null";

// Puts `by` in the place of `mark`. REQUIRES: `text` has it.
void Replace(std::string& text, std::string_view mark, std::string_view by);
// Returns the first sentence of a help text without its full stop, for lists of options.
std::string FirstSentence(std::string_view help);

}  // namespace nereid::cli
