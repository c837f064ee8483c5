// SPDX-License-Identifier: Apache-2.0
// Results that are shown again and again (--watch): in place on a terminal, below each other
// elsewhere.
#pragma once

#include <functional>
#include <optional>

#include "cli/command.h"
#include "cli/server_client.h"

namespace nereid::cli {

// Adds the option --watch to the command.
void AddWatch(Command& command, std::optional<Seconds>& interval);

// Prints what `print` prints about a server: once without an interval, else until Ctrl-C, which is
// a success. With an interval, errors are shown and tried again, except for one of the first time.
ExitCode Watch(std::optional<Seconds> interval, const ServerOptions& server, Output& output,
               const std::function<base::Result<ExitCode>(ServerClient&)>& print);

// Prints once what `ask` prints about a server.
ExitCode AskServer(const ServerOptions& server, Output& output,
                   const std::function<base::Result<ExitCode>(ServerClient&)>& ask);

}  // namespace nereid::cli
