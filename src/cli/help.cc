// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nereid::cli {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kHelpIndent = 8;
constexpr std::string_view kOptions = "Options";

void AppendArgument(std::string& out, const Argument& argument, size_t width) {
  out.append(kIndent, ' ').append(ArgumentTitle(argument)) += '\n';
  AppendWrapped(out, ArgumentHelp(argument), kHelpIndent, width);
}

// The headings of options in the order in which they first appear, the common one first.
std::vector<std::string> Groups(const Command& command) {
  std::vector<std::string> groups = {std::string(kOptions)};
  for (const Argument& argument : command.arguments()) {
    if (argument.is_positional() || argument.group.empty()) continue;
    if (std::ranges::find(groups, argument.group) == groups.end()) groups.push_back(argument.group);
  }
  return groups;
}

}  // namespace

void AppendWrapped(std::string& out, std::string_view text, size_t indent, size_t width) {
  size_t column = 0;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    if (column > 0 && column + 1 + DisplayWidth(word) > width) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out.append(indent, ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += DisplayWidth(word);
  }
  if (column > 0) out += '\n';
}

size_t HelpWidth(const Output& output) {
  constexpr size_t kDefault = 80;
  return output.out().width == 0 ? kDefault : std::clamp<size_t>(output.out().width, 40, 100);
}

std::string ArgumentTitle(const Argument& argument) {
  if (argument.is_positional()) {
    return argument.is_repeatable ? argument.names.front() + "..." : argument.names.front();
  }
  std::string title = fmt::format("{}", fmt::join(argument.names, ", "));
  if (argument.bare) return fmt::format("{} [{}]", title, argument.value);
  return argument.value.empty() ? title : fmt::format("{} {}", title, argument.value);
}

std::string UsageLine(const Command& command) {
  std::string line = fmt::format("nereid {}", command.name());
  for (const Argument& argument : command.arguments()) {
    if (!argument.is_positional()) continue;
    const std::string title = ArgumentTitle(argument);
    line += argument.is_required ? fmt::format(" {}", title) : fmt::format(" [{}]", title);
  }
  line += " [options]";
  return command.rest() == nullptr ? line : fmt::format("{} [-- {}...]", line, command.rest_name());
}

std::string ArgumentHelp(const Argument& argument) {
  std::string text = argument.help;
  if (!argument.choices.empty()) {
    text += fmt::format(" One of: {}.", fmt::join(argument.choices, ", "));
  }
  if (!argument.default_text.empty()) text += fmt::format(" Default: {}.", argument.default_text);
  if (!argument.variable.empty()) {
    text += fmt::format(" Environment variable: {}.", argument.variable);
  }
  if (!argument.excludes.empty()) text += fmt::format(" Not with {}.", argument.excludes);
  if (argument.is_repeatable && !argument.is_positional()) text += " May be repeated.";
  return text;
}

std::string CommandHelp(const Command& command, size_t width) {
  std::string out = fmt::format("{}.\n\nUsage: {}\n", command.summary(), UsageLine(command));
  if (!command.description().empty()) {
    out += '\n';
    AppendWrapped(out, command.description(), 0, width);
  }
  bool is_first = true;
  for (const Argument& argument : command.arguments()) {
    if (!argument.is_positional()) continue;
    if (is_first) out += "\nArguments:\n";
    is_first = false;
    AppendArgument(out, argument, width);
  }
  for (const std::string& group : Groups(command)) {
    out += fmt::format("\n{}:\n", group);
    for (const Argument& argument : command.arguments()) {
      if (argument.is_positional()) continue;
      if (group == (argument.group.empty() ? kOptions : std::string_view(argument.group))) {
        AppendArgument(out, argument, width);
      }
    }
  }
  if (!command.examples().empty()) out += "\nExamples:\n";
  for (const Example& example : command.examples()) {
    out.append(kIndent, ' ').append(example.line) += '\n';
    AppendWrapped(out, example.text, kHelpIndent, width);
  }
  return out;
}

}  // namespace nereid::cli
