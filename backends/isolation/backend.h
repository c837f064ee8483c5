// SPDX-License-Identifier: Apache-2.0
// The stand-in for the backends of isolated models: their settings, and how processes are started.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "backend_kit/error.h"
#include "backend_kit/handles.h"
#include "python_backend/process.h"
#include "python_backend/watch.h"

namespace nereid::isolation {

// Shared by all isolated models. Immutable, except for its parts.
struct Backend {
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);

  // Returns the settings of a backend, as a list of keys and values (confinement_text.h).
  std::string SettingsOf(std::string_view name) const;

  std::map<std::string, std::string> settings;  // of all backends; see SettingsOf
  std::string backends;                         // the folder of backends
  std::string program;                          // `nereid`
  std::unique_ptr<python::Supervisor> supervisor;
  std::unique_ptr<python::Watch> watch;
  backend::MetricFamily deaths;  // null if the server has no custom metrics
};

}  // namespace nereid::isolation
