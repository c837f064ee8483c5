// SPDX-License-Identifier: Apache-2.0
#include "app/server.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/frontends.h"
#include "app/option_table.h"
#include "base/log.h"
#include "capi/server.h"
#include "engine/engine.h"
#include "engine/startup_log.h"

namespace nereid::app {

// The parts in the order of construction; they are destroyed in reverse.
struct Server::Parts {
  Parts(const Options& options, std::vector<repository::StoreKind> more_stores)
      : core(options.engine, options.exit_timeout, std::move(more_stores)),
        frontends(options, core.engine) {}

  TRITONSERVER_Server core;  // the server as its backends see it
  engine::Engine& engine = core.engine;
  Frontends frontends;
};

// Makes the folder where the models that SageMaker loads are linked; null if it may not load
// models.
static std::unique_ptr<LinkFolder> MakeSagemakerLinks(Options& options) {
  if (!options.cloud.sagemaker.is_allowed) return nullptr;
  if (options.engine.control.mode != engine::ControlMode::kExplicit) return nullptr;
  std::unique_ptr<LinkFolder> links = LinkFolder::Create();
  if (links == nullptr) return nullptr;
  options.cloud.sagemaker_entry.models.links = links->path();
  options.engine.repository.repositories.push_back(links->path());
  return links;
}

Server::Server(Options options, std::vector<repository::StoreKind> more_stores)
    : sagemaker_links_(MakeSagemakerLinks(options)),
      options_(std::move(options)),
      parts_(std::make_unique<Parts>(options_, std::move(more_stores))) {}

Server::~Server() = default;

base::Status Server::Listen() { return parts_->frontends.Listen(); }

base::Status Server::LoadModels() {
  const base::Status started = parts_->engine.Start();
  NEREID_LOG_LINES(kInfo, OptionTable(options_, parts_->engine.metadata()).Lines());
  if (!started.ok()) {
    std::string text = fmt::format("creating server: {} - {}", base::StatusCodeName(started.code()),
                                   started.message());
    while (text.ends_with('\n')) text.pop_back();
    const std::string failures = engine::DescribeFailures(parts_->engine.RepositoryIndex(false),
                                                          options_.engine.control.startup_models);
    if (!failures.empty()) text += "; " + failures;
    return {started.code(), std::move(text)};
  }
  return base::OkStatus();
}

service::Service& Server::service() { return parts_->engine; }

cli::ServerPorts Server::ports() const {
  const Frontends::Ports ports = parts_->frontends.ports();
  return {.http = ports.http, .grpc = ports.grpc, .metrics = ports.metrics};
}

base::Status Server::ServeLoaded() { return parts_->frontends.ServeLoaded(); }

void Server::StartDraining() { parts_->engine.StartDraining(); }

// The remaining time of Stop, for the log.
static int64_t SecondsLeft(base::TimePoint deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max<int64_t>(0, std::chrono::ceil<std::chrono::seconds>(left).count());
}

std::chrono::seconds Server::exit_timeout() const { return parts_->core.exit_timeout(); }

bool Server::Answers(std::chrono::milliseconds patience) const {
  if (!parts_->frontends.Answers(patience)) return false;
  if (parts_->engine.IsWell()) return true;
  NEREID_LOG(
      kError,
      "the service manager is not told that the server is alive: a thread, an execution or a "
      "device does not work");
  return false;
}

std::optional<std::string> Server::FatalError() const { return parts_->engine.FatalError(); }

Server::Ending Server::Stop() {
  StartDraining();
  const base::TimePoint deadline = std::chrono::steady_clock::now() + parts_->core.exit_timeout();
  NEREID_LOG(kInfo, "Waiting for in-flight requests to complete.");
  parts_->engine.LogInFlight(SecondsLeft(deadline));
  parts_->engine.FinishSequences(deadline);
  Ending ending;
  ending.all_answered = parts_->frontends.Drain(deadline);
  engine::Unfinished left = parts_->engine.Stop(deadline);
  for (const std::string& work : left.work) NEREID_LOG(kError, "{}", work);
  NEREID_LOG(kInfo, "Timeout {}: Found {} model versions that have in-flight inferences",
             SecondsLeft(deadline), left.busy_versions);
  parts_->frontends.StopMetrics();
  ending.unfinished = std::move(left.work);
  return ending;
}

}  // namespace nereid::app
