// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace nereid::cli {
namespace {

// Bash makes words of their own of "=" and ":", so that `--url=http` arrives as "--url", "=",
// "http".
constexpr const char* kBashBegin =
    R"bash(# Completion of nereid for bash. Load it with: source <(nereid completion bash)

_nereid_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2"); }
# The names are a server's: they are compared, and quoted, but never expanded by the shell. Within
# quotes that are still open, only names are offered that mean themselves in both kinds of quotes.
_nereid_models() {
    local typed=$1 quote= name word
    local -a names
    case $typed in
        [\"\']*) quote=${typed:0:1} typed=${typed:1} ;;
    esac
    mapfile -t names < <(@MODELS@)
    for name in "${names[@]}"; do
        [[ -z $name || $name == -* ]] && continue
        if [[ -z $quote ]]; then
            printf -v word %q "$name"
        elif [[ $name == *[\"\'\\\$\`!]* ]]; then
            continue
        else
            word=$name
        fi
        [[ $word == "$typed"* || $name == "$typed"* ]] && COMPREPLY+=("$word")
    done
}
_nereid_files() {
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

_nereid() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} options= values=
    COMPREPLY=()
    if [[ $current == '=' ]]; then
        current=
    elif [[ $previous == '=' ]]; then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    fi
    if (( COMP_CWORD == 1 )) && [[ $current != -* ]]; then
        _nereid_words '@COMMANDS@' "$current"
        return
    fi
    if [[ $command == -* ]]; then
        _nereid_words '@FLAGS@' "$current"
        return
    fi
    case $command:$previous in
@VALUES@    esac
    case $command in
@OPTIONS@        *) return ;;
    esac
    if [[ $current == -* ]]; then
        _nereid_words "$options" "$current"
    else
        case $values in
            @files) _nereid_files -f "$current" ;;
            @folders) _nereid_files -d "$current" ;;
            @models) _nereid_models "$current" ;;
            *) _nereid_words "$values" "$current" ;;
        esac
    fi
}

complete -F _nereid nereid
)bash";

// What completes the value: a list of words, or the name of a kind.
std::string BashValues(const Argument& argument) {
  if (!argument.choices.empty()) return fmt::format("{}", fmt::join(argument.choices, " "));
  switch (argument.hint) {
    case Hint::kFile:
      return "@files";
    case Hint::kFolder:
      return "@folders";
    case Hint::kModel:
      return "@models";
    case Hint::kNothing:
      break;
  }
  return "";
}

std::string ActionFor(const std::string& values) {
  if (values == "@files") return "_nereid_files -f \"$current\"; return";
  if (values == "@folders") return "_nereid_files -d \"$current\"; return";
  if (values == "@models") return "_nereid_models \"$current\"; return";
  return values.empty() ? "return" : fmt::format("_nereid_words '{}' \"$current\"; return", values);
}

}  // namespace

std::string BashCompletion(const CompletionInput& input) {
  std::string commands;
  std::string value_cases;
  std::string option_cases;
  for (const auto& command : input.commands) {
    commands += (commands.empty() ? "" : " ") + command->name();
    std::string options = "--help";
    std::string values;
    for (const Argument& argument : command->arguments()) {
      if (argument.is_positional()) {
        if (values.empty()) values = BashValues(argument);
        continue;
      }
      options += fmt::format(" {}", fmt::join(argument.names, " "));
      // After an option that may go without a value comes anything.
      if (argument.value.empty() || argument.bare) continue;
      std::string patterns;
      for (const std::string& name : argument.names) {
        patterns += fmt::format("{}{}:{}", patterns.empty() ? "" : "|", command->name(), name);
      }
      value_cases += fmt::format("        {}) {} ;;\n", patterns, ActionFor(BashValues(argument)));
    }
    option_cases +=
        fmt::format("        {}) options='{}' values='{}' ;;\n", command->name(), options, values);
  }
  std::string flags;
  for (const ServerFlag& flag : input.flags) {
    flags += fmt::format("{}--{}", flags.empty() ? "" : " ", flag.name);
  }
  std::string script = kBashBegin;
  Replace(script, "@COMMANDS@", commands);
  Replace(script, "@FLAGS@", flags);
  Replace(script, "@VALUES@", value_cases);
  Replace(script, "@OPTIONS@", option_cases);
  Replace(script, "@MODELS@", kListModels);
  return script;
}

}  // namespace nereid::cli
