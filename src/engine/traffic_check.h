// SPDX-License-Identifier: Apache-2.0
// Whether the versions that a change of rules names can serve requests.
#pragma once

#include "base/status.h"
#include "engine/model_table.h"
#include "service/traffic.h"

namespace nereid::engine {

// Checks what `change` names; a version that the rules named before may have gone meanwhile, which
// is no reason to refuse another change. `rules` has the change. The error names the versions that
// are ready.
base::Status CheckTargets(const ModelRecord& record, const service::TrafficRules& rules,
                          const service::TrafficChange& change, const ModelTable& table);

}  // namespace nereid::engine
