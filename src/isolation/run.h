// SPDX-License-Identifier: Apache-2.0
// The process of an isolated model: the program `nereid` in another mode, started by the server
// (backends/isolation) with a socket as descriptor 3.
#pragma once

#include <functional>

#include "triton/core/tritonserver.h"

namespace nereid::isolation {

// Whether the command line asks for this mode.
bool IsForIsolatedModel(int argc, char** argv);

// Confines this process, and serves the model until the server says that it is unloaded, or is
// gone. `server` makes the object that backends get when they ask for their server; it is called
// once. If the command line ends with another program, becomes that.
int RunIsolatedModel(int argc, char** argv, const std::function<TRITONSERVER_Server&()>& server);

}  // namespace nereid::isolation
