// SPDX-License-Identifier: Apache-2.0
// The life of the process: command line, log, signals, exit code.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "app/crash_report.h"
#include "app/server.h"
#include "app/service_manager.h"
#include "app/signals.h"
#include "base/allocator.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/object_pool.h"
#include "base/reopen_log.h"
#include "base/thread.h"
#include "base/timers.h"
#include "cli/commands.h"

namespace nereid::app {
namespace {

// How often idle memory of the pools is returned to the system.
constexpr std::chrono::seconds kTrimTime{2};
// The extra time after a stop's deadline for work that does not observe it.
constexpr std::chrono::seconds kPatience{2};

// Prints a line to standard error, unless nobody reads it: printing would never end.
void PrintError(std::string_view line) {
  constexpr int kPatienceMs = 1000;
  pollfd error{STDERR_FILENO, POLLOUT, 0};
  if (poll(&error, 1, kPatienceMs) != 1) return;
  const std::string text = fmt::format("{}\n", line);
  // Nobody is left to be told if this fails.
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// Returns `code`. If nobody reads the log, ends the process with it instead, because the C library
// would wait for the reader at a usual exit.
int ExitCode(int code) {
  if (!base::FlushLog()) std::quick_exit(code);
  return code;
}

// Some of Triton's texts, which scripts search for, already begin with "Error: ".
int Fail(std::string_view text) {
  base::FlushLog();
  while (text.ends_with('\n')) text.remove_suffix(1);
  PrintError(fmt::format("{}{}", text.starts_with("Error: ") ? "" : "error: ", text));
  return ExitCode(1);
}

// Prints what was asked for in place of a server. Returns the exit status.
int PrintAnswer(const std::string& text) {
  const bool is_whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) == 0 && is_whole) return 0;
  return Fail(fmt::format("cannot write to the standard output: {}", std::strerror(errno)));
}

// Ends the process without running destructors, because threads still use its objects. Only
// temporary folders are removed (base/quick_exit.h).
[[noreturn]] void EndAtOnce(const std::string& line) {
  static_cast<void>(Fail(line));
  std::fflush(nullptr);
  std::quick_exit(1);
}

// A last resort: the process ends soon after `deadline` even if the stop hangs in something without
// a deadline, such as a backend that does not return.
void EndSoonAfter(base::TimePoint deadline) {
  // Both are leaked, because the process may end while the callback runs.
  static auto* const timers = new base::Timers;
  static auto* const alarm = new base::Timer(*timers, [] {
    PrintError("error: the server was not taken apart within --exit-timeout-secs and ends at once");
    std::quick_exit(1);
  });
  const auto at = (deadline + kPatience).time_since_epoch();
  alarm->ArmAt(static_cast<uint64_t>(std::chrono::nanoseconds(at).count()));
}

// Returns what to report in the end: `error`, which is why the server stops if not for a signal, or
// else an error of the stop itself.
std::optional<std::string> StopServer(Server& server, std::optional<std::string> error = {}) {
  EndSoonAfter(std::chrono::steady_clock::now() + server.exit_timeout());
  const Server::Ending ending = server.Stop();
  if (!ending.unfinished.empty()) {
    if (error) PrintError("error: " + *error);
    EndAtOnce(
        fmt::format("the server did not stop within --exit-timeout-secs={}, and ends at once: {}",
                    server.exit_timeout().count(), fmt::join(ending.unfinished, "; ")));
  }
  if (!error && !ending.all_answered) {
    error = "some requests did not finish within --exit-timeout-secs";
  }
  return error;
}

// The manager sees a reload that has ended when the new file is in use.
void ReopenLog(ServiceManager& manager) {
  const bool is_reload = manager.Reloading();
  if (const base::Status status = base::ReopenLog(); !status.ok()) {
    NEREID_LOG(kError, "{}", status.message());
  }
  if (is_reload) manager.Ready();
}

// Waits for a stop signal and handles other events. Returns false if Signals::Wake was called, or
// `must_end`, which is asked now and then, says so.
bool WaitForStop(Signals& signals, ServiceManager& manager,
                 const std::function<bool()>& must_end = {}) {
  while (true) {
    switch (signals.Wait(kTrimTime)) {
      case Signals::Event::kStop:
        return true;
      case Signals::Event::kWoken:
        return false;
      case Signals::Event::kReopenLog:
        ReopenLog(manager);
        break;
      case Signals::Event::kNothing:
        if (must_end && must_end()) return false;
        base::TrimBuffers();
        base::TrimObjectPools();
    }
  }
}

// Serves for `time`; a second signal ends it early.
void ServeOn(Signals& signals, std::chrono::seconds time) {
  const base::TimePoint end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(end - std::chrono::steady_clock::now());
    if (signals.Wait(left) == Signals::Event::kStop) return;
  }
}

base::Status LoadModels(Server& server, const cli::ServerHooks& hooks) {
  base::Status status = server.LoadModels();
  if (status.ok() && hooks.on_loaded) hooks.on_loaded(server.service(), server.ports());
  if (!status.ok() && hooks.describe_failure) {
    status = base::Status(status.code(),
                          hooks.describe_failure(server.service(), std::string(status.message())));
  }
  return status;
}

// Serves until a stop signal. Returns an error, if any. All parts are destroyed by then.
std::optional<std::string> Serve(Options options, const cli::ServerHooks& hooks, Signals& signals,
                                 ServiceManager& manager) {
  const std::chrono::seconds drain_time = options.drain_time;
  const bool exits_on_fatal_error = options.exits_on_fatal_error;
  Server server(std::move(options), hooks.stores);
  base::Status status = server.Listen();
  if (status.ok()) {
    // Loading may take long; a stop signal is handled meanwhile.
    base::Thread loader("start", [&] {
      status = LoadModels(server, hooks);
      signals.Wake();
    });
    if (WaitForStop(signals, manager)) {
      manager.Stopping(server.exit_timeout() + kPatience);
      Signals::LetStopEndTheProcess();
      std::optional<std::string> error = StopServer(server);
      loader.Join();
      return error;
    }
    loader.Join();
    if (status.ok()) status = server.ServeLoaded();
  }
  if (!status.ok()) {
    // A server that did not start has no requests to wait for.
    Signals::LetStopEndTheProcess();
    return StopServer(server, std::string(status.message()));
  }
  manager.Ready();
  std::optional<std::string> fatal_error;
  {
    const base::AllocatorUpkeep upkeep;
    const Watchdog watchdog(manager, [&](auto patience) { return server.Answers(patience); });
    WaitForStop(signals, manager, [&] {
      if (exits_on_fatal_error) fatal_error = server.FatalError();
      return fatal_error.has_value();
    });
  }
  if (fatal_error) {
    // A supervisor that restarts the process should not have to wait.
    manager.Stopping(server.exit_timeout() + kPatience);
    Signals::LetStopEndTheProcess();
    return StopServer(server, "the server ends after an error that only a new process cures: " +
                                  *std::move(fatal_error));
  }
  manager.Stopping(drain_time + server.exit_timeout() + kPatience);
  server.StartDraining();
  ServeOn(signals, drain_time);
  Signals::LetStopEndTheProcess();
  return StopServer(server);
}

}  // namespace

int RunServer(int argc, char** argv, const cli::ServerHooks& hooks) {
  base::Result<Options> options = ParseCommandLine(argc, argv);
  if (!options.ok()) return Fail(options.status().message());
  if (options->wants_help) {
    std::string text = Usage(argv[0]);
    if (cli::HasCommands(argv[0])) {
      text += fmt::format(
          "\nInstead of flags, the first argument may be a command ({} help COMMAND):\n\n{}",
          argv[0], cli::CommandList());
    }
    return PrintAnswer(text);
  }
  if (options->wants_version) {
    return PrintAnswer(fmt::format("nereid {}\nstands in for Triton Inference Server {}\n",
                                   NEREID_VERSION, options->engine.version));
  }
  // Set before any thread exists, because changing the environment is not thread-safe. Without it
  // ONNX Runtime, here or in the processes of Python models, which inherit it, collects and sends
  // usage data.
  setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/1);
  // The CUDA driver keeps what it compiles in the home folder, unless it is given another one.
  if (std::getenv("CUDA_CACHE_PATH") == nullptr) {
    setenv("CUDA_CACHE_DISABLE", "1", /*overwrite=*/0);
  }
  // TBB, which OpenVINO's backends bring, opens libraries with RTLD_DEEPBIND. These would then free
  // with the C library what this process has allocated with jemalloc, and end it. With this
  // variable TBB opens them without that flag.
  setenv("TBB_ENABLE_SANITIZERS", "1", /*overwrite=*/0);
  InstallCrashReport();
  ServiceManager manager = ServiceManager::FromEnvironment();
  Signals signals;
  if (const base::Status status = base::ConfigureLog(options->log); !status.ok()) {
    return Fail(status.message());
  }
  for (const std::string& warning : options->warnings) NEREID_LOG(kWarning, "{}", warning);

  const std::optional<std::string> error = Serve(*std::move(options), hooks, signals, manager);
  if (error) return Fail(*error);
  return ExitCode(0);
}

}  // namespace nereid::app
