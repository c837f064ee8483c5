// SPDX-License-Identifier: Apache-2.0
// Reads the body of POST .../models/{model}/traffic.
#pragma once

#include <string_view>

#include "base/status.h"
#include "service/traffic.h"

namespace nereid::http {

// Returns the change that the JSON describes (docs/versions.md): members that it lacks stay as they
// are, and null removes. InvalidArgument for members that nobody knows and for wrong types, with
// the member and what was expected.
base::Result<service::TrafficChange> ReadTrafficChange(std::string_view body);

}  // namespace nereid::http
