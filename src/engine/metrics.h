// SPDX-License-Identifier: Apache-2.0
// The nv_* metric families of the models, with the names, types and labels that dashboards know.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model.h"
#include "engine/life_cycle.h"

namespace nereid::engine {

// The page for the loaded models. `has_cache`: the server keeps responses of those that ask for it.
std::string FormatMetrics(const std::vector<std::shared_ptr<core::Model>>& models,
                          const std::vector<LifeCycle::LoadTime>& load_times, bool has_cache);

}  // namespace nereid::engine
