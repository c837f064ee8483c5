// SPDX-License-Identifier: Apache-2.0
// What the log says once the models are loaded: which backends and models there are, in tables like
// those of Triton, which people and scripts look for.
#pragma once

#include <vector>

#include "backend_host/backend_libraries.h"
#include "service/service.h"

namespace nereid::engine {

void LogBackends(const std::vector<backend_host::LoadedBackend>& backends);
// Those that were to be loaded; the others do not matter to whoever started the server.
void LogModels(const std::vector<service::IndexEntry>& index);

}  // namespace nereid::engine
