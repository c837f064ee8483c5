// SPDX-License-Identifier: Apache-2.0
// What the metrics page says of the rules by which requests find a version.
#pragma once

#include "engine/model_table.h"
#include "observe/metrics_page.h"

namespace nereid::engine {

// Adds lines for the models that have rules; none for others.
void AddTraffic(observe::MetricsPage& page, const ModelTable& table);

}  // namespace nereid::engine
