// SPDX-License-Identifier: Apache-2.0
// How often the processes of a model have died, on the metrics page.
#pragma once

#include "backend_kit/model_metric.h"

namespace nereid::python {

// Returns the family in which each model of this backend has a counter.
inline backend::MetricFamily NewDeathFamily() {
  return backend::NewCounterFamily("nereid_model_process_deaths_total",
                                   "Processes of the model's instances that ended by themselves; "
                                   "each is replaced");
}

}  // namespace nereid::python
