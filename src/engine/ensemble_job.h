// SPDX-License-Identifier: Apache-2.0
// Prepares the load of an ensemble: finds the model of each step and checks that they fit.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "core/model.h"
#include "engine/ensemble_order.h"
#include "engine/load_attempt.h"

namespace nereid::engine {

// The loaded version of that number, or the highest for -1; null when there is none.
using FindLoaded = std::function<std::shared_ptr<core::Model>(const ModelId& id, int64_t version)>;

// The job that loads the ensemble `source`, whose steps are those of `entry`; an error where it
// does not fit what it contains. Needs each step's model to be loaded, in the version it names.
base::Result<LoadJob> MakeEnsembleJob(const repository::ModelSource& source,
                                      const EnsembleEntry& entry, const FindLoaded& find);

}  // namespace nereid::engine
