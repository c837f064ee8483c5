// SPDX-License-Identifier: Apache-2.0
// What --backend-config=python,KEY=VALUE says. The keys are Triton's; those about its shared memory
// are checked and have no other effect, since ours needs no sizes.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::python {

// --backend-config=python,….
struct Settings {
  std::chrono::seconds start_timeout{30};  // stub-timeout-seconds
  std::string interpreter;                 // python-runtime; empty: found in PATH
  std::string backend_directory;           // where the server's backends are
  bool checks_outputs = true;              // check-outputs: of models that do not say themselves

  // Of the configuration that the server gives a backend. Logs a note for keys without effect.
  static backend::Result<Settings> Parse(std::string_view json);
};

}  // namespace nereid::python
