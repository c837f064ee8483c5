// SPDX-License-Identifier: Apache-2.0
// What the console shows of a model's load besides the statistics of the v2 API: how durations are
// distributed, why batches were closed, why requests failed or were refused.
#pragma once

#include <span>
#include <string>

#include "service/service.h"

namespace nereid::console {

// Returns {"bounds_ms":[...],"models":[{"name":...,"version":...,"request":[...],...}]}: the counts
// of each bucket of durations, of which the last has no upper bound.
std::string ModelLoadJson(std::span<const service::ModelStatistics> models);

}  // namespace nereid::console
