// SPDX-License-Identifier: Apache-2.0
// What a command is given besides its arguments.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"

namespace nereid::cli {

// A flag of the server, as `nereid --help` shows it.
struct ServerFlag {
  std::string_view name;   // without the dashes
  std::string_view value;  // the form of the value; empty: no value
  std::string_view help;
};

// The server of this program, which is in a module above this one.
struct ServerProgram {
  std::string_view version;
  // Runs a server in this process until it is stopped, and returns the exit status. `arguments` are
  // flags as on the command line of the server, without the program's name. No thread may exist.
  std::function<int(std::vector<std::string> arguments)> run;
  std::function<std::vector<ServerFlag>()> flags;
};

// One run of a command.
struct Invocation {
  Output& output;
  const ServerProgram& server;
};

}  // namespace nereid::cli
