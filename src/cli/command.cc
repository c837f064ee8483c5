// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace nereid::cli {

Command::Command(std::string name, std::string summary)
    : name_(std::move(name)), summary_(std::move(summary)) {}

Argument& Command::Flag(std::string_view names, bool& value, std::string help) {
  arguments_.push_back(
      {.names = SplitNames(names), .help = std::move(help), .set = [&value](std::string_view) {
         value = true;
         return base::OkStatus();
       }});
  return arguments_.back();
}

void Command::AddExample(std::string line, std::string text) {
  examples_.push_back({std::move(line), std::move(text)});
}

std::vector<std::string> Command::SplitNames(std::string_view names) {
  std::vector<std::string> split;
  while (true) {
    const size_t comma = names.find(',');
    split.emplace_back(names.substr(0, comma));
    if (comma == std::string_view::npos) return split;
    names.remove_prefix(comma + 1);
  }
}

}  // namespace nereid::cli
