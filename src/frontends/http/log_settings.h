// SPDX-License-Identifier: Apache-2.0
// The logging extension over HTTP.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::http {

// Returns the settings of the log as JSON.
std::string LogSettingsJson();

// Applies all changes of `body`, a JSON object, or none if there is an error. Clients cannot change
// the file.
base::Status UpdateLogSettings(std::string_view body);

}  // namespace nereid::http
