// SPDX-License-Identifier: Apache-2.0
// The composition root: makes every part of the process, in order, and takes them down in reverse.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/status.h"
#include "cli/server_hooks.h"
#include "repository/routed_store.h"
#include "service/service.h"

namespace nereid::app {

// The server process. Confined to the main thread, except for LoadModels.
class Server {
 public:
  explicit Server(Options options, std::vector<repository::StoreKind> more_stores = {});
  ~Server();

  // Listen, LoadModels and ServeLoaded are the steps of the start, in this order. The process
  // prints their error and ends. Listeners are opened first, so that a port in use is reported at
  // once and health checks work while models load.
  base::Status Listen();
  // May be called on any thread; Stop may be called meanwhile.
  base::Status LoadModels();
  // Each is there as long as this object, and thread-safe. REQUIRES: Listen succeeded.
  service::Service& service();
  cli::ServerPorts ports() const;
  // Starts the services that need loaded models.
  base::Status ServeLoaded();

  // Makes the server not ready; everything is still served.
  void StartDraining();
  // The result of Stop.
  struct Ending {
    bool all_answered = true;             // no connection was closed during a request
    std::vector<std::string> unfinished;  // if not empty, the server must not be destroyed
  };
  // Refuses new requests, finishes those in flight within the exit timeout, and unloads the models.
  // Returns soon after that time in any case.
  Ending Stop();
  std::chrono::seconds exit_timeout() const;
  // Returns the error that only a new process cures.
  std::optional<std::string> FatalError() const;
  // For the service manager: whether the server is live, all its threads and devices work, and each
  // of its event loops does what it is given within `patience`; logs if they do not. From any
  // thread, from Listen until Stop.
  bool Answers(std::chrono::milliseconds patience) const;

 private:
  struct Parts;

  // Declared before the options, which refer to it.
  const std::unique_ptr<LinkFolder> sagemaker_links_;
  const Options options_;
  std::unique_ptr<Parts> parts_;
};

// The main function of the server. Returns 0, or 1 after printing one line with the reason on
// standard error.
int RunServer(int argc, char** argv, const cli::ServerHooks& hooks = {});

// The main function of the program: a command (cli/commands.h) or the server.
int RunProgram(int argc, char** argv);

}  // namespace nereid::app
