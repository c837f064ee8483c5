// SPDX-License-Identifier: Apache-2.0
// What the log says once the models are loaded: which backends and models there are, in tables like
// those of Triton, which people and scripts look for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "service/service.h"

namespace nereid::engine {

void LogBackends(const std::vector<backend_host::LoadedBackend>& backends);
// Those that were to be loaded; the others do not matter to whoever started the server.
void LogModels(const std::vector<service::IndexEntry>& index);

// Which of the models in `index` failed, which of the `wanted` ones are not there, and how the
// others could be served. Empty when nothing failed.
std::string DescribeFailures(const std::vector<service::IndexEntry>& index,
                             const std::set<std::string>& wanted);

}  // namespace nereid::engine
