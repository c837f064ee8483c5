// SPDX-License-Identifier: Apache-2.0
// Prepares the load of an ensemble: finds the model of each step and checks that they fit together.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "core/model.h"
#include "engine/ensemble_order.h"
#include "engine/load_attempt.h"

namespace nereid::engine {

// Returns the loaded version of that number, or the highest for -1; null if there is none.
using FindLoaded = std::function<std::shared_ptr<core::Model>(const ModelId& id, int64_t version)>;

// Returns the job that loads the ensemble `source`, whose steps are those of `entry`. Fails if the
// ensemble does not fit its models. REQUIRES: each step's model is loaded, in the version that the
// step names.
base::Result<LoadJob> MakeEnsembleJob(const repository::ModelSource& source,
                                      const EnsembleEntry& entry, const FindLoaded& find);

}  // namespace nereid::engine
