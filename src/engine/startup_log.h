// SPDX-License-Identifier: Apache-2.0
// The tables of backends and models that are logged at start-up. They look like Triton's, because
// people and scripts search for them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "service/service.h"

namespace nereid::engine {

void LogBackends(const std::vector<backend_host::LoadedBackend>& backends);
// Logs the models that should have been loaded and leaves out the others.
void LogModels(const std::vector<service::IndexEntry>& index);

// Describes which models in `index` failed, which of the `wanted` ones are missing, and how the
// others could be served. Empty if nothing failed.
std::string DescribeFailures(const std::vector<service::IndexEntry>& index,
                             const std::set<std::string>& wanted);

}  // namespace nereid::engine
