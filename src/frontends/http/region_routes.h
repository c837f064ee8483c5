// SPDX-License-Identifier: Apache-2.0
// The requests of the shared memory extension: /v2/systemsharedmemory/... and
// /v2/cudasharedmemory/...
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "http/route.h"
#include "memory/region_table.h"

namespace nereid::http {

// Executes a request to `route`, which is one of them, and returns the body of the reply. Bodies of
// status and unregister requests are ignored.
base::Result<std::string> HandleRegionRequest(memory::RegionTable& regions, const Route& route,
                                              std::string_view body);

}  // namespace nereid::http
