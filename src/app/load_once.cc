// SPDX-License-Identifier: Apache-2.0
#include "app/load_once.h"

#include <chrono>
#include <memory>

#include "app/options.h"
#include "base/log.h"
#include "capi/server.h"

namespace nereid::app {
namespace {

constexpr std::chrono::seconds kStopTime{10};

base::Result<Options> ParseFlags(std::vector<std::string> arguments) {
  std::string program = "nereid";
  std::string mode = "--model-control-mode=explicit";
  // What the generation files of its repositories ask for is not for it.
  std::string looks = "--generation-poll-ms=0";
  std::vector<char*> argv = {program.data(), mode.data(), looks.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return ParseCommandLine(static_cast<int>(argv.size()) - 1, argv.data());
}

base::Result<config::ModelConfig> Load(engine::Engine& engine, const std::string& model) {
  NEREID_RETURN_IF_ERROR(engine.Start());
  NEREID_RETURN_IF_ERROR(engine.LoadTrusted(model, {}));
  NEREID_ASSIGN_OR_RETURN(const auto config, engine.GetModelConfig(model, ""));
  return *config;
}

}  // namespace

base::Result<config::ModelConfig> LoadOnce(std::vector<std::string> arguments,
                                           const std::string& model) {
  NEREID_ASSIGN_OR_RETURN(Options options, ParseFlags(std::move(arguments)));
  // The result tells what went wrong; the log would repeat it.
  options.log.info = options.log.warning = options.log.error = false;
  NEREID_RETURN_IF_ERROR(base::ConfigureLog(options.log));
  auto server = std::make_unique<TRITONSERVER_Server>(std::move(options.engine), kStopTime);
  auto config = Load(server->engine, model);
  const auto unfinished = server->engine.Stop(std::chrono::steady_clock::now() + kStopTime);
  // What still runs uses the server, which then stays until the process ends.
  if (!unfinished.empty()) static_cast<void>(server.release());
  return config;
}

}  // namespace nereid::app
