// SPDX-License-Identifier: Apache-2.0
// The object behind TRITONSERVER_Server*, both for an embedder (TRITONSERVER_ServerNew) and for the
// backends of a running server (TRITONBACKEND_ModelServer).
#pragma once

#include <atomic>
#include <chrono>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "triton/core/tritonserver.h"

// Thread-safe.
struct TRITONSERVER_Server {
  // `more_stores` are kinds of repository stores besides the usual ones.
  TRITONSERVER_Server(nereid::engine::EngineOptions options, std::chrono::seconds exit_timeout,
                      std::vector<nereid::repository::StoreKind> more_stores = {});
  TRITONSERVER_Server(const TRITONSERVER_Server&) = delete;
  TRITONSERVER_Server& operator=(const TRITONSERVER_Server&) = delete;
  virtual ~TRITONSERVER_Server() = default;

  // Waits for requests in flight, for the exit timeout at most, and unloads the models. Internal if
  // anything is left. Unsupported if the caller is a backend, which does not own the server.
  virtual nereid::base::Status Stop();

  // How long a stop waits for requests in flight.
  std::chrono::seconds exit_timeout() const { return exit_timeout_.load(); }
  void SetExitTimeout(std::chrono::seconds timeout) { exit_timeout_.store(timeout); }

  nereid::engine::Engine engine;

 private:
  std::atomic<std::chrono::seconds> exit_timeout_;
};
