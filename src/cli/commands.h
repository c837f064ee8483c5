// SPDX-License-Identifier: Apache-2.0
// The commands of the program, and how a command line is recognised as one of them.
//
// A new command is a file with a function AddX (command.h shows one), a declaration of that
// function below and a row of the table in commands.cc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/invocation.h"

namespace nereid::cli {

void AddBench(Command& command);
void AddCheck(Command& command);
void AddCompletion(Command& command);
void AddDoctor(Command& command);
void AddExplain(Command& command);
void AddHealth(Command& command);
void AddHelp(Command& command);
void AddInfer(Command& command);
void AddInit(Command& command);
void AddKeys(Command& command);
void AddLoad(Command& command);
void AddLog(Command& command);
void AddMetrics(Command& command);
void AddModels(Command& command);
void AddServe(Command& command);
void AddStats(Command& command);
void AddTrace(Command& command);
void AddTune(Command& command);
void AddUnload(Command& command);

// A row of the table of commands.
struct CommandEntry {
  std::string_view group;  // the heading in lists of commands
  std::string_view name;
  std::string_view summary;  // one line, without a full stop
  void (*add)(Command& command);
};

// All commands, those of a group together.
std::span<const CommandEntry> AllCommands();

// Returns null if there is no such command.
const CommandEntry* FindCommand(std::string_view name);

// A command with all its arguments, also those that every command has.
struct BuiltCommand {
  std::unique_ptr<Command> command;
  const bool* wants_json;  // belongs to the command
};
BuiltCommand BuildCommand(const CommandEntry& entry);

// Whether the program has commands under this name or path: not as tritonserver, the link that
// stands in for Triton.
bool HasCommands(std::string_view program);
// Whether the command line is for a command rather than for the server: the program has commands,
// and its first argument has no dash, which the server would refuse.
bool IsForCommand(int argc, const char* const* argv);

// Runs the command that the command line names, and returns the exit status of the program.
// REQUIRES: IsForCommand(argc, argv).
int RunCommand(int argc, const char* const* argv, const ServerProgram& server);

// The lists of commands for the end of the server's help and for `nereid help`.
std::string CommandList();

}  // namespace nereid::cli
