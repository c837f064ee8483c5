// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "cli/help.h"
#include "cli/parser.h"

namespace nereid::cli {
namespace {

constexpr std::string_view kFiles = "Models and repositories";
constexpr std::string_view kServer = "A running server";
constexpr std::string_view kProgram = "This program";

constexpr CommandEntry kCommands[] = {
    {kFiles, "serve", "Serves model files at once, without a repository", AddServe},
    {kFiles, "check", "Finds every mistake in model repositories", AddCheck},
    {kFiles, "explain", "Shows a configuration in force, and where each value comes from",
     AddExplain},
    {kFiles, "init", "Puts model files into a repository, with configurations", AddInit},
    {kFiles, "tune", "Searches for the best configuration of a model on this machine", AddTune},
    {kServer, "models", "Shows the models of a server and their states", AddModels},
    {kServer, "stats", "Shows what models have done, and how long it took", AddStats},
    {kServer, "load", "Loads a model", AddLoad},
    {kServer, "unload", "Unloads a model", AddUnload},
    {kServer, "infer", "Sends a request to a model and shows the outputs", AddInfer},
    {kServer, "bench", "Measures how fast a model is under load, and compares runs", AddBench},
    {kServer, "trace", "Shows or changes what requests are traced", AddTrace},
    {kServer, "log", "Shows or changes what the server logs", AddLog},
    {kServer, "health", "Tells whether a server or a model is ready", AddHealth},
    {kServer, "metrics", "Shows the metrics of a server", AddMetrics},
    {kProgram, "keys", "Adds, lists and revokes API keys", AddKeys},
    {kProgram, "doctor", "Examines this machine for what keeps a server from working", AddDoctor},
    {kProgram, "completion", "Prints the completion of commands and options for a shell",
     AddCompletion},
    {kProgram, "help", "Explains a command, or lists all commands", AddHelp},
};

std::vector<std::string_view> Names() {
  std::vector<std::string_view> names;
  for (const CommandEntry& entry : kCommands) names.push_back(entry.name);
  return names;
}

ExitCode UsageError(Output& output, std::string_view text, std::string_view advice) {
  const ExitCode code = output.Fail(ExitCode::kUsage, text);
  output.Note(advice);
  return code;
}

ExitCode Run(const CommandEntry& entry, std::vector<std::string> arguments,
             Invocation& invocation) {
  const BuiltCommand built = BuildCommand(entry);
  const Command& command = *built.command;
  Output& output = invocation.output;
  const base::Result<ParsedArguments> parsed = Parse(command, std::move(arguments));
  if (!parsed.ok()) {
    return UsageError(output, parsed.status().message(),
                      fmt::format("Usage: {}\n'nereid help {}' explains the options.",
                                  UsageLine(command), command.name()));
  }
  if (parsed->wants_help) {
    output.PrintText(CommandHelp(command, HelpWidth(output)));
    return ExitCode::kSuccess;
  }
  output.set_wants_json(*built.wants_json);
  // The document stands alone, whatever the code of models prints.
  if (output.wants_json()) output.KeepStandardOutput();
  return command.run()(invocation);
}

}  // namespace

std::span<const CommandEntry> AllCommands() { return kCommands; }

const CommandEntry* FindCommand(std::string_view name) {
  const auto* const found = std::ranges::find(kCommands, name, &CommandEntry::name);
  return found == std::end(kCommands) ? nullptr : found;
}

BuiltCommand BuildCommand(const CommandEntry& entry) {
  auto command = std::make_unique<Command>(std::string(entry.name), std::string(entry.summary));
  auto& wants_json = command->Keep<bool>();
  entry.add(*command);
  command->Flag("--json", wants_json,
                "Prints the result as one JSON document, for programs to read.");
  return {std::move(command), &wants_json};
}

bool HasCommands(std::string_view program) {
  return program.substr(program.rfind('/') + 1) != "tritonserver";
}

bool IsForCommand(int argc, const char* const* argv) {
  return argc > 1 && argv[1][0] != '-' && argv[1][0] != '\0' && HasCommands(argv[0]);
}

int RunCommand(int argc, const char* const* argv, const ServerProgram& server) {
  const std::string_view name = argv[1];
  std::vector<std::string> arguments(argv + 2, argv + argc);
  Output output;
  // Known before the arguments are parsed, so that errors in these are JSON as well.
  output.set_wants_json(std::ranges::find(arguments, "--json") != arguments.end());
  Invocation invocation{output, server};
  const CommandEntry* const entry = FindCommand(name);
  const ExitCode code =
      entry != nullptr
          ? Run(*entry, std::move(arguments), invocation)
          : UsageError(
                output,
                fmt::format("there is no command '{}'{}", name, base::DidYouMean(name, Names())),
                "'nereid help' lists the commands. The flags of a server begin with --.");
  return static_cast<int>(output.Finish(code));
}

std::string CommandList() {
  std::string out;
  std::string_view group;
  for (const CommandEntry& entry : kCommands) {
    if (entry.group != group) out += fmt::format("{}{}:\n", group.empty() ? "" : "\n", entry.group);
    group = entry.group;
    out += fmt::format("  {:<12}{}\n", entry.name, entry.summary);
  }
  return out;
}

}  // namespace nereid::cli
