// SPDX-License-Identifier: Apache-2.0
// The program: a command if the first argument names one, else the server.
#include <string>
#include <vector>

#include "app/flags.h"
#include "app/server.h"
#include "cli/commands.h"

namespace nereid::app {
namespace {

int RunServerWith(char* program, std::vector<std::string> arguments) {
  std::vector<char*> argv = {program};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return RunServer(static_cast<int>(argv.size()) - 1, argv.data());
}

std::vector<cli::ServerFlag> ServerFlags() {
  std::vector<cli::ServerFlag> flags;
  for (const FlagGroup& group : AllFlags()) {
    for (const Flag& flag : group.flags) flags.push_back({flag.name, flag.value, flag.help});
  }
  return flags;
}

}  // namespace

int RunProgram(int argc, char** argv) {
  if (!cli::IsForCommand(argc, argv)) return RunServer(argc, argv);
  return cli::RunCommand(argc, argv,
                         {.version = NEREID_VERSION,
                          .run =
                              [&](std::vector<std::string> arguments) {
                                return RunServerWith(argv[0], std::move(arguments));
                              },
                          .flags = ServerFlags});
}

}  // namespace nereid::app
