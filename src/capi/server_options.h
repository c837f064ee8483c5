// SPDX-License-Identifier: Apache-2.0
// The object behind TRITONSERVER_ServerOptions*. The defaults are those of Triton's C API, which
// differ from those of its command line: configurations must be complete, and models may be polled
// for.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "engine/engine.h"
#include "triton/core/tritonserver.h"

// A value type; thread-compatible. What is not a field of `engine` is put there by ToEngineOptions.
struct TRITONSERVER_ServerOptions {
  TRITONSERVER_ServerOptions();

  nereid::engine::EngineOptions ToEngineOptions() const;

  nereid::engine::EngineOptions engine;
  std::set<std::string> repositories;
  std::chrono::seconds exit_timeout{30};
};
