// SPDX-License-Identifier: Apache-2.0
// The object behind TRITONSERVER_ServerOptions*. The defaults are those of Triton's C API, which
// differ from those of its command line: configurations must be complete, and models may be polled.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "engine/engine.h"
#include "triton/core/tritonserver.h"

// A value type; thread-compatible. ToEngineOptions converts the members that are not in `engine`.
struct TRITONSERVER_ServerOptions {
  TRITONSERVER_ServerOptions();

  nereid::engine::EngineOptions ToEngineOptions() const;

  nereid::engine::EngineOptions engine;
  std::set<std::string> repositories;
  std::chrono::seconds exit_timeout{30};
};
