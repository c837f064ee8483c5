// SPDX-License-Identifier: Apache-2.0
// The state of the Python backend: its settings and where its files are.
#pragma once

#include <memory>
#include <string>

#include "backend_kit/error.h"
#include "backend_kit/handles.h"
#include "python_backend/environment.h"
#include "python_backend/settings.h"
#include "python_backend/watch.h"
#include "python_backend/worker.h"

namespace nereid::python {

// Shared by all models. Immutable, except for its parts.
struct Backend {
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);

  Settings settings;
  std::string folder;        // with the worker's scripts
  std::string model_folder;  // whose model.py all models run; empty if each has its own
  std::unique_ptr<Supervisor> supervisor;
  std::unique_ptr<Environments> environments;
  Watch watch;                   // over workers whose time is limited
  backend::MetricFamily deaths;  // null if the server has no custom metrics
};

}  // namespace nereid::python
