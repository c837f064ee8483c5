// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace nereid::cli {
namespace {

constexpr const char* kZshBegin =
    R"zsh(#compdef nereid
# Completion of nereid for zsh. Write it to a file _nereid in a folder of $fpath, or load it with:
# source <(nereid completion zsh)

_nereid_models() {
    local expl
    local -a models=(${(f)"$(@MODELS@)"})
    # A name that begins with a dash would be taken for an option.
    models=(${models:#-*})
    _wanted models expl model compadd -a models
}

_nereid() {
    local -a commands=(
@COMMANDS@    )
    local -a flags=(
@FLAGS@    )
    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then
        _describe -t commands command commands
        return
    fi
    local command=${words[2]}
    if [[ $command == -* ]]; then
        _arguments -S $flags
        return
    fi
    shift words
    (( CURRENT-- ))
    case $command in
@OPTIONS@    esac
}

if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _nereid "$@"
else
    compdef _nereid nereid
fi
)zsh";

// Escapes what has a meaning in specifications of _arguments and _describe, and quotes for the
// shell.
std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ActionFor(const Argument& argument) {
  if (!argument.choices.empty()) return fmt::format("({})", fmt::join(argument.choices, " "));
  switch (argument.hint) {
    case Hint::kFile:
      return "_files";
    case Hint::kFolder:
      return "_files -/";
    case Hint::kModel:
      return "_nereid_models";
    case Hint::kNothing:
      break;
  }
  return "";
}

// The specifications of one argument, each in quotes: of a positional one, or of every name of an
// option, which exclude each other unless it may be repeated.
std::string Specifications(const Argument& argument, size_t position) {
  const std::string value =
      fmt::format(":{}:{}", Escape(argument.value), Escape(ActionFor(argument)));
  if (argument.is_positional()) {
    return argument.is_repeatable ? fmt::format(" '*{}'", value)
                                  : fmt::format(" '{}{}'", position, value);
  }
  std::string out;
  for (const std::string& name : argument.names) {
    const bool is_long = name.starts_with("--");
    out += fmt::format(
        " '{}{}{}[{}]{}{}'",
        argument.is_repeatable ? "*" : fmt::format("({})", fmt::join(argument.names, " ")), name,
        argument.value.empty() ? "" : (is_long ? "=" : "+"), Escape(FirstSentence(argument.help)),
        argument.bare ? ":" : "", argument.value.empty() ? "" : value);
  }
  return out;
}

}  // namespace

std::string ZshCompletion(const CompletionInput& input) {
  std::string commands;
  std::string options;
  for (const auto& command : input.commands) {
    commands += fmt::format("        '{}:{}'\n", command->name(), Escape(command->summary()));
    options += fmt::format(
        "        {})\n            _arguments -s '(--help -h)'{{--help,-h}}'[Explains the command]'",
        command->name());
    size_t position = 0;
    for (const Argument& argument : command->arguments()) {
      if (argument.is_positional()) ++position;
      options += " \\\n               " + Specifications(argument, position);
    }
    options += "\n            ;;\n";
  }
  std::string flags;
  for (const ServerFlag& flag : input.flags) {
    flags += fmt::format("        '*--{}{}[{}]{}'\n", flag.name, flag.value.empty() ? "" : "=",
                         Escape(FirstSentence(flag.help)),
                         flag.value.empty() ? "" : fmt::format(":{}:", Escape(flag.value)));
  }
  std::string script = kZshBegin;
  Replace(script, "@MODELS@", kListModels);
  Replace(script, "@COMMANDS@", commands);
  Replace(script, "@FLAGS@", flags);
  Replace(script, "@OPTIONS@", options);
  return script;
}

}  // namespace nereid::cli
