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

// Does what `route`, one of them, says and gives the body of the answer. Bodies of status and
// unregister requests are not looked at.
base::Result<std::string> AnswerRegionRequest(memory::RegionTable& regions, const Route& route,
                                              std::string_view body);

}  // namespace nereid::http
