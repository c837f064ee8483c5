// SPDX-License-Identifier: Apache-2.0
// The object behind TRITONSERVER_Server*: the one that an embedder made with
// TRITONSERVER_ServerNew, and the one that a running server hands to its backends
// (TRITONBACKEND_ModelServer) are the same.
#pragma once

#include <atomic>
#include <chrono>

#include "base/status.h"
#include "engine/engine.h"
#include "triton/core/tritonserver.h"

// Thread-safe.
struct TRITONSERVER_Server {
  TRITONSERVER_Server(nereid::engine::EngineOptions options, std::chrono::seconds exit_timeout);
  TRITONSERVER_Server(const TRITONSERVER_Server&) = delete;
  TRITONSERVER_Server& operator=(const TRITONSERVER_Server&) = delete;
  virtual ~TRITONSERVER_Server() = default;

  // Waits for requests in flight, for as long as the exit timeout says, and unloads the models;
  // Internal when something was left. Unsupported where the caller is a backend: the server is not
  // its own.
  virtual nereid::base::Status Stop();

  // For how long a stop waits for what is in flight.
  std::chrono::seconds exit_timeout() const { return exit_timeout_.load(); }
  void SetExitTimeout(std::chrono::seconds timeout) { exit_timeout_.store(timeout); }

  nereid::engine::Engine engine;

 private:
  std::atomic<std::chrono::seconds> exit_timeout_;
};
