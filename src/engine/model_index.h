// SPDX-License-Identifier: Apache-2.0
// The repository index: the models in the repositories and any other loaded ones, with their
// states.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/model_table.h"
#include "repository/model_source.h"
#include "service/service.h"

namespace nereid::engine {

// Makes the index. `reasons` says why models are not loaded, if that is known. It is told of models
// without any version and of those whose versions were all unloaded.
std::vector<service::IndexEntry> MakeIndex(
    const repository::Listing& listing, const ModelTable& table,
    const std::map<repository::ModelId, std::string>& reasons, bool only_ready);

}  // namespace nereid::engine
