// SPDX-License-Identifier: Apache-2.0
// The settings --backend-config=python,KEY=VALUE. The keys are Triton's; those about its shared
// memory are checked but have no effect, because ours needs no sizes.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::python {

// The values of --backend-config=python,….
struct Settings {
  std::chrono::seconds start_timeout{30};  // stub-timeout-seconds
  std::string interpreter;                 // python-runtime; empty: found in PATH
  std::string backend_directory;           // where the server's backends are
  bool checks_outputs = true;              // check-outputs: for models that do not say themselves

  // Reads the configuration that the server gives a backend. Logs a note for keys without effect.
  static backend::Result<Settings> Parse(std::string_view json);
};

}  // namespace nereid::python
