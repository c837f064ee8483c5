// SPDX-License-Identifier: Apache-2.0
// Makes the rules by which requests find a version (service/traffic.h): from the parameters of a
// model's configuration, and by the changes of control calls.
#pragma once

#include <string_view>

#include "base/status.h"
#include "config/model_config.h"
#include "service/traffic.h"

namespace nereid::engine {

// Whether `text` can be a label: a letter or underscore, then letters, digits, '_', '-' and '.', 64
// characters at most. No number can.
bool IsVersionLabel(std::string_view text);

// Whether TrafficRulesOf reads the parameter.
bool IsTrafficParameter(std::string_view name);

// Reads version_labels, default_version_label, canary_* and shadow_*. The error names the parameter
// and what it should be.
base::Result<service::TrafficRules> TrafficRulesOf(const config::ModelConfig& config);

// Returns `rules` with the change. The error says which rule makes no sense. Which versions there
// are plays no part.
base::Result<service::TrafficRules> ChangedRules(service::TrafficRules rules,
                                                 const service::TrafficChange& change);

// Returns "'a', 'b'" for the labels a and b; "none" if there are none.
std::string ListLabels(const service::TrafficRules& rules);

}  // namespace nereid::engine
