// SPDX-License-Identifier: Apache-2.0
// nereid help
#include <fmt/format.h>

#include "base/json_text.h"
#include "base/nearest_name.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace nereid::cli {
namespace {

struct HelpSettings {
  std::optional<std::string> command;
};

constexpr std::string_view kBegin =
    "Nereid serves models over HTTP and gRPC.\n\n"
    "Usage: nereid COMMAND [arguments]\n"
    "       nereid --model-repository FOLDER [flags]   the server, with the flags of Triton\n\n";
constexpr std::string_view kEnd =
    "\n'nereid help COMMAND' explains a command, 'nereid --help' lists the flags of the server.\n";

ExitCode Help(const HelpSettings& settings, Invocation& invocation) {
  Output& output = invocation.output;
  if (!settings.command) {
    output.PrintText(fmt::format("{}{}{}", kBegin, CommandList(), kEnd));
    return ExitCode::kSuccess;
  }
  const CommandEntry* const entry = FindCommand(*settings.command);
  if (entry == nullptr) {
    std::vector<std::string_view> names;
    for (const CommandEntry& one : AllCommands()) names.push_back(one.name);
    return output.Fail(ExitCode::kUsage,
                       fmt::format("there is no command '{}'{}", *settings.command,
                                   base::DidYouMean(*settings.command, names)));
  }
  output.PrintText(CommandHelp(*BuildCommand(*entry).command, HelpWidth(output)));
  return ExitCode::kSuccess;
}

}  // namespace

void AddHelp(Command& command) {
  auto& settings = command.Keep<HelpSettings>();
  command.Positional("COMMAND", settings.command, "The command to explain.");
  command.OnRun([&settings](Invocation& invocation) { return Help(settings, invocation); });
}

}  // namespace nereid::cli
