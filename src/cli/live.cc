// SPDX-License-Identifier: Apache-2.0
#include "cli/live.h"

#include <algorithm>

#include "cli/interrupt.h"

namespace nereid::cli {
namespace {

// Faster than this, a terminal only flickers and a server only answers this.
constexpr Seconds kMinInterval{0.1};

}  // namespace

void AddWatch(Command& command, std::optional<Seconds>& interval) {
  command
      .Option("--watch,-w", "TIME", interval,
              "Shows the result again after each interval, every 2 seconds if none is given, until "
              "Ctrl-C. With --json, each result is one line.")
      .Bare("2s");
}

ExitCode Watch(std::optional<Seconds> interval, const ServerOptions& server, Output& output,
               const std::function<base::Result<ExitCode>(ServerClient&)>& print) {
  auto client = ServerClient::Create(server);
  if (!client.ok()) return output.Fail(ExitCode::kUsage, client.status().message());
  const auto print_once = [&] {
    const base::Result<ExitCode> code = print(**client);
    if (code.ok()) return *code;
    return output.Fail(ExitCodeOf(code.status()), code.status().message());
  };
  if (!interval) return print_once();
  const Interrupt interrupt;
  (*client)->CancelOn(interrupt.token());
  for (bool is_first = true;; is_first = false) {
    output.BeginFrame();
    const ExitCode code = print_once();
    if (interrupt.is_requested()) {
      output.DropFrame();
      return ExitCode::kSuccess;
    }
    output.EndFrame();
    if (!output.Flush()) return ExitCode::kFailure;
    if (is_first && code != ExitCode::kSuccess) return code;
    if (interrupt.WaitFor(std::max(*interval, kMinInterval))) return ExitCode::kSuccess;
  }
}

ExitCode AskServer(const ServerOptions& server, Output& output,
                   const std::function<base::Result<ExitCode>(ServerClient&)>& ask) {
  return Watch(std::nullopt, server, output, ask);
}

}  // namespace nereid::cli
