// SPDX-License-Identifier: Apache-2.0
// The life of the process: command line, log, signals, exit code.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "app/server.h"
#include "app/signals.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/object_pool.h"
#include "base/reopen_log.h"
#include "base/thread.h"
#include "base/timers.h"

namespace nereid::app {
namespace {

// Idle memory of the pools goes back to the system at this pace.
constexpr std::chrono::seconds kTrimTime{2};
// After the deadline of a stop, which keeps to it, for what nobody can watch over.
constexpr std::chrono::seconds kPatience{2};

// Some texts of Triton's, which scripts look for, say themselves that they are errors.
int Fail(std::string_view text) {
  base::FlushLog();
  while (text.ends_with('\n')) text.remove_suffix(1);
  fmt::print(stderr, "{}{}\n", text.starts_with("Error: ") ? "" : "error: ", text);
  return 1;
}

// Ends the process while threads still use what it is made of: no destructor may run. Only what
// would outlive it goes (base/quick_exit.h).
[[noreturn]] void EndAtOnce(const std::string& line) {
  static_cast<void>(Fail(line));
  std::fflush(nullptr);
  std::quick_exit(1);
}

// The last resort: whatever a stop waits for that has no deadline, a backend that does not end or a
// terminal that does not read the log, the process is gone soon after `deadline`.
void EndSoonAfter(base::TimePoint deadline) {
  // Both live as long as the process, which may end while the alarm rings.
  static auto* const timers = new base::Timers;
  static auto* const alarm = new base::Timer(*timers, [] {
    constexpr std::string_view kText =
        "error: the server was not taken apart within --exit-timeout-secs and ends at once\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
    std::quick_exit(1);
  });
  const auto at = (deadline + kPatience).time_since_epoch();
  alarm->ArmAt(static_cast<uint64_t>(std::chrono::nanoseconds(at).count()));
}

// What is to be told when everything else is gone: `error`, why the server stops if not for a
// signal, or what went wrong now.
std::optional<std::string> StopServer(Server& server, std::optional<std::string> error = {}) {
  EndSoonAfter(std::chrono::steady_clock::now() + server.exit_timeout());
  const Server::Ending ending = server.Stop();
  if (!ending.unfinished.empty()) {
    if (error) fmt::print(stderr, "error: {}\n", *error);
    EndAtOnce(
        fmt::format("the server did not stop within --exit-timeout-secs={}, and ends at once: {}",
                    server.exit_timeout().count(), fmt::join(ending.unfinished, "; ")));
  }
  if (!error && !ending.all_answered) {
    error = "some requests did not finish within --exit-timeout-secs";
  }
  return error;
}

// Waits for a signal to stop, for as long as `signals` bring anything else. False when somebody
// called Signals::Wake instead.
bool WaitForStop(Signals& signals) {
  while (true) {
    switch (signals.Wait(kTrimTime)) {
      case Signals::Event::kStop:
        return true;
      case Signals::Event::kWoken:
        return false;
      case Signals::Event::kReopenLog:
        if (const base::Status status = base::ReopenLog(); !status.ok()) {
          NEREID_LOG(kError, "{}", status.message());
        }
        break;
      case Signals::Event::kNothing:
        base::TrimBuffers();
        base::TrimObjectPools();
    }
  }
}

// A second signal cuts it short.
void ServeOn(Signals& signals, std::chrono::seconds time) {
  const base::TimePoint end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(end - std::chrono::steady_clock::now());
    if (signals.Wait(left) == Signals::Event::kStop) return;
  }
}

// Serves until a signal says stop. What went wrong, if anything did; by then every part is gone.
std::optional<std::string> Serve(Options options, Signals& signals) {
  const std::chrono::seconds drain_time = options.drain_time;
  Server server(std::move(options));
  base::Status status = server.Listen();
  if (status.ok()) {
    // Loading takes any time, and a signal to stop is heard meanwhile.
    base::Thread loader("start", [&] {
      status = server.LoadModels();
      signals.Wake();
    });
    if (WaitForStop(signals)) {
      Signals::LetStopEndTheProcess();
      std::optional<std::string> error = StopServer(server);
      loader.Join();
      return error;
    }
    loader.Join();
    if (status.ok()) status = server.ServeLoaded();
  }
  if (!status.ok()) {
    // What cannot start has no requests that would be waited for.
    Signals::LetStopEndTheProcess();
    return StopServer(server, std::string(status.message()));
  }
  WaitForStop(signals);
  server.StartDraining();
  ServeOn(signals, drain_time);
  Signals::LetStopEndTheProcess();
  return StopServer(server);
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
  // Before any thread exists, as the environment is nothing that threads can share: ONNX Runtime,
  // here or in a Python model's process, which inherits this, keeps and sends data about its use
  // otherwise.
  setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/1);
  Signals signals;
  if (const base::Status status = base::ConfigureLog(options->log); !status.ok()) {
    return Fail(status.message());
  }
  for (const std::string& warning : options->warnings) NEREID_LOG(kWarning, "{}", warning);

  const std::optional<std::string> error = Serve(*std::move(options), signals);
  if (error) return Fail(*error);
  base::FlushLog();
  return 0;
}

}  // namespace nereid::app
