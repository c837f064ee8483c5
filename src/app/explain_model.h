// SPDX-License-Identifier: Apache-2.0
// Where the values of a loaded model's configuration come from, for the console: what
// `nereid explain` says of a folder, of the files that the server has loaded.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace nereid::app {

// Returns {"config":"/models/m/config.pbtxt","is_changed":false,"values":[{"field":...,"value":...,
// "from":...,"line":3,"written":...},...]}. `is_changed`: what the files say now is not what the
// model was loaded with. Reads files. Fails if the model is not ready, or its configuration cannot
// be read any more.
base::Result<std::string> ExplainModel(engine::Engine& engine, const std::string& name);

}  // namespace nereid::app
