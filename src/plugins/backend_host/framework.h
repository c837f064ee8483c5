// SPDX-License-Identifier: Apache-2.0
// Asks a backend which framework it has found (nereid/backend_framework.h).
#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace nereid::backend_host {

// What a backend says about its framework.
struct FrameworkFacts {
  std::string name;   // "ONNX Runtime"
  std::string error;  // why it cannot be opened; the following are empty then
  std::string version;
  std::string path;  // of the library or program that was found
};

// Opens the backend's library, and the framework if the backend can be asked about it; returns
// nothing if it cannot. Fails if the library does not open or is no backend. REQUIRES: this process
// does nothing else and ends soon, because frameworks start threads and may crash.
base::Result<std::optional<FrameworkFacts>> AskAboutFramework(const std::string& path);

}  // namespace nereid::backend_host
