// SPDX-License-Identifier: Apache-2.0
// The life of the process: command line, log, signals, exit code.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "app/server.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/object_pool.h"

namespace nereid::app {
namespace {

// Idle memory of the pools goes back to the system at this pace.
constexpr time_t kTrimSeconds = 2;

// Some texts of Triton's, which scripts look for, say themselves that they are errors.
int Fail(std::string_view text) {
  base::FlushLog();
  while (text.ends_with('\n')) text.remove_suffix(1);
  fmt::print(stderr, "{}{}\n", text.starts_with("Error: ") ? "" : "error: ", text);
  return 1;
}

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// Waits at most `seconds` for a stop signal. True when one came.
bool WaitForStopSignal(time_t seconds) {
  const sigset_t set = StopSignals();
  const timespec timeout{.tv_sec = seconds, .tv_nsec = 0};
  return sigtimedwait(&set, nullptr, &timeout) > 0;
}

// From here on a signal ends the process at once: whoever sends a second one means it.
void LetSignalsEndTheProcess() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// Serves until a signal says stop. What went wrong, if anything did; by then every part is gone.
std::optional<std::string> Serve(Options options) {
  const std::chrono::seconds drain_time = options.drain_time;
  Server server(std::move(options));
  if (const base::Status status = server.Start(); !status.ok()) {
    server.Stop();
    return std::string(status.message());
  }
  while (!WaitForStopSignal(kTrimSeconds)) {
    base::TrimBuffers();
    base::TrimObjectPools();
  }
  server.StartDraining();
  if (drain_time.count() > 0)
    WaitForStopSignal(drain_time.count());  // a second signal cuts it short
  LetSignalsEndTheProcess();
  if (!server.Stop()) return "some requests did not finish within --exit-timeout-secs";
  return std::nullopt;
}

}  // namespace

int RunServer(int argc, char** argv) {
  base::Result<Options> options = ParseCommandLine(argc, argv);
  if (!options.ok()) return Fail(options.status().message());
  if (options->wants_help) {
    fmt::print("{}", Usage(argv[0]));
    return 0;
  }
  if (options->wants_version) {
    fmt::print("nereid {}\nstands in for Triton Inference Server {}\n", NEREID_VERSION,
               options->engine.version);
    return 0;
  }
  // Before any thread exists, as the environment is nothing that threads can share: ONNX Runtime, here
  // or in a Python model's process, which inherits this, keeps and sends data about its use otherwise.
  setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/1);
  // Before any thread exists, so that all inherit it: only this thread takes the signals.
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (const base::Status status = base::ConfigureLog(options->log); !status.ok()) {
    return Fail(status.message());
  }
  for (const std::string& warning : options->warnings) NEREID_LOG(kWarning, "{}", warning);

  const std::optional<std::string> error = Serve(*std::move(options));
  if (error) return Fail(*error);
  base::FlushLog();
  return 0;
}

}  // namespace nereid::app
