// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace nereid::cli {
namespace {

constexpr const char* kFishBegin =
    R"fish(# Completion of nereid for fish. Write it to ~/.config/fish/completions/nereid.fish, or load it with:
# nereid completion fish | source

function __nereid_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

function __nereid_takes_flags
    set -l words (commandline -opc)
    test (count $words) -eq 1; or string match -q -- '-*' $words[2]
end

function __nereid_is_new
    test (count (commandline -opc)) -eq 1
end

complete -c nereid -f
)fish";

// Returns the text in quotes for fish.
std::string Quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// The options of `complete` that tell how a value is completed.
std::string FishValues(const Argument& argument) {
  if (!argument.choices.empty()) {
    return fmt::format(" -xa {}", Quote(fmt::format("{}", fmt::join(argument.choices, " "))));
  }
  switch (argument.hint) {
    case Hint::kFile:
      return " -rF";
    case Hint::kFolder:
      return " -xa '(__fish_complete_directories)'";
    case Hint::kModel:
      // A name that begins with a dash would be taken for an option.
      return fmt::format(" -xa {}",
                         Quote(fmt::format("({} | string match -v -- '-*')", kListModels)));
    case Hint::kNothing:
      break;
  }
  return " -x";
}

std::string Line(const Command& command, const Argument& argument) {
  std::string line = fmt::format("complete -c nereid -n '__nereid_is {}'", command.name());
  if (argument.is_positional()) {
    if (argument.hint == Hint::kNothing && argument.choices.empty()) return "";
    line += argument.hint == Hint::kFile ? " -F" : FishValues(argument);
    return line + "\n";
  }
  for (const std::string& name : argument.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  // An option that may go without a value must not take the next word for it.
  if (!argument.value.empty() && !argument.bare) line += FishValues(argument);
  return line + fmt::format(" -d {}\n", Quote(FirstSentence(argument.help)));
}

}  // namespace

std::string FishCompletion(const CompletionInput& input) {
  std::string script = kFishBegin;
  for (const auto& command : input.commands) {
    script += fmt::format("\ncomplete -c nereid -n __nereid_is_new -a {} -d {}\n", command->name(),
                          Quote(command->summary()));
    for (const Argument& argument : command->arguments()) script += Line(*command, argument);
  }
  script += '\n';
  for (const ServerFlag& flag : input.flags) {
    script += fmt::format("complete -c nereid -n __nereid_takes_flags -l {}{} -d {}\n", flag.name,
                          flag.value.empty() ? "" : " -r", Quote(FirstSentence(flag.help)));
  }
  return script;
}

}  // namespace nereid::cli
