// SPDX-License-Identifier: Apache-2.0
// Parameters of requests and responses as the JSON in which server and worker exchange them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/parameter.h"
#include "core/request.h"

namespace nereid::isolation {

// Returns a flat object; empty if there are no parameters.
std::string ParametersText(const std::vector<core::Parameter>& parameters);
// Adds the members of such an object to the request, in its arena.
base::Status ReadParameters(std::string_view json, core::Request& request);

}  // namespace nereid::isolation
