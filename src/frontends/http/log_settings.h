// SPDX-License-Identifier: Apache-2.0
// The logging extension over HTTP.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::http {

// The settings of the log in JSON.
std::string LogSettingsJson();

// Takes over what `body`, a JSON object, wants changed: all of it or, with an error, nothing. The
// file cannot be changed by clients.
base::Status UpdateLogSettings(std::string_view body);

}  // namespace nereid::http
