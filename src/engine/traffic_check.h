// SPDX-License-Identifier: Apache-2.0
// Changes of a model's rules: what they make of those before, and whether the versions that they
// name can serve requests.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "engine/model_table.h"
#include "engine/traffic.h"
#include "repository/model_source.h"
#include "service/traffic.h"

namespace nereid::engine {

// Returns the rules of model `id`, which clients call `name`, after the change; those before if it
// changes nothing. What it names must be ready, and the error names the versions that are. A
// version that the rules named before may have gone meanwhile, which is no reason to refuse another
// change.
base::Result<std::shared_ptr<const Traffic>> TrafficAfterChange(
    const ModelTable& table, const repository::ModelId& id, std::string_view name,
    const service::TrafficChange& change);

// Returns the rules of a model after a load; those before if the configuration has not changed
// them. `record` is null for a model that was not known.
std::shared_ptr<const Traffic> TrafficAfterLoad(const repository::ModelSource& source,
                                                const ModelRecord* record);

}  // namespace nereid::engine
