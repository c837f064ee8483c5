// SPDX-License-Identifier: Apache-2.0
// nereid/frontends.h: listeners for a server that lives in a program.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi_objects/error.h"
#include "app/flags.h"
#include "app/frontends.h"
#include "app/options.h"
#include "base/mutex.h"
#include "base/status.h"
#include "capi/server.h"
#include "nereid/frontends.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::Status;

// Owned by the caller of NEREIDSERVER_FrontendsNew.
struct NEREIDSERVER_Frontends {
  NEREIDSERVER_Frontends(nereid::app::Options parsed, TRITONSERVER_Server& of)
      : server(of), options(std::move(parsed)), frontends(options, of.engine) {}

  TRITONSERVER_Server& server;
  const nereid::app::Options options;
  nereid::app::Frontends frontends;
};

namespace nereid::app {
namespace {

// Whether the flag is about listeners. The others are about the server, which exists already.
bool IsOfFrontends(std::string_view name) {
  constexpr std::string_view kOthers[] = {"allow-metrics",      "metrics-address",
                                          "metrics-port",       "min-body-rate",
                                          "unix-socket-mode",   "max-header-bytes",
                                          "max-stream-backlog", "min-read-rate",
                                          "write-timeout-secs", "max-requests-per-connection"};
  if (std::ranges::find(kOthers, name) != std::end(kOthers)) return true;
  for (const FlagGroup& group : AllFlags()) {
    if (group.title != "HTTP" && group.title != "gRPC") continue;
    if (std::ranges::find(group.flags, name, &Flag::name) != group.flags.end()) return true;
  }
  return false;
}

base::Result<Options> ParseFlags(const char* const* flags, size_t count) {
  // The parser of command lines requires a repository; it is not used.
  std::vector<std::string> arguments = {"nereid", "--model-repository=unused"};
  for (size_t i = 0; i < count; ++i) {
    const std::string_view flag = flags[i];
    const std::string_view name = flag.substr(0, flag.find('='));
    if (!IsOfFrontends(name)) {
      return base::InvalidArgumentError("'" + std::string(name) +
                                        "' is not a flag of HTTP, gRPC or metrics");
    }
    arguments.push_back("--" + std::string(flag));
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  // The parser uses getopt, whose state belongs to the process.
  static base::Mutex mutex;
  base::MutexLock lock(mutex);
  return ParseCommandLine(static_cast<int>(arguments.size()), argv.data());
}

}  // namespace
}  // namespace nereid::app

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* NEREIDSERVER_FrontendsNew(NEREIDSERVER_Frontends** frontends,
                                              TRITONSERVER_Server* server, const char* const* flags,
                                              size_t count) {
  return RunApiCall([&]() -> Status {
    *frontends = nullptr;
    NEREID_ASSIGN_OR_RETURN(nereid::app::Options options, nereid::app::ParseFlags(flags, count));
    auto made = std::make_unique<NEREIDSERVER_Frontends>(std::move(options), *server);
    NEREID_RETURN_IF_ERROR(made->frontends.Listen());
    *frontends = made.release();
    return {};
  });
}

TRITONSERVER_Error* NEREIDSERVER_FrontendsPorts(NEREIDSERVER_Frontends* frontends, uint16_t* http,
                                                uint16_t* grpc, uint16_t* metrics) {
  return RunApiCall([&]() -> Status {
    const nereid::app::Frontends::Ports ports = frontends->frontends.ports();
    *http = ports.http;
    *grpc = ports.grpc;
    *metrics = ports.metrics;
    return {};
  });
}

TRITONSERVER_Error* NEREIDSERVER_FrontendsStop(NEREIDSERVER_Frontends* frontends) {
  return RunApiCall([&]() -> Status {
    TRITONSERVER_Server& server = frontends->server;
    server.engine.StartDraining();
    const auto deadline = std::chrono::steady_clock::now() + server.exit_timeout();
    server.engine.FinishSequences(deadline);
    const bool all_answered = frontends->frontends.Drain(deadline);
    frontends->frontends.StopMetrics();
    // The stop of the server, which follows, has what is left of the time: one timeout for both.
    const auto left = std::max(deadline - std::chrono::steady_clock::now(),
                               std::chrono::steady_clock::duration::zero());
    server.SetExitTimeout(std::chrono::ceil<std::chrono::seconds>(left));
    if (all_answered) return {};
    return nereid::base::InternalError("some requests did not finish within the exit timeout");
  });
}

TRITONSERVER_Error* NEREIDSERVER_FrontendsDelete(NEREIDSERVER_Frontends* frontends) {
  return RunApiCall([&]() -> Status {
    delete frontends;
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
