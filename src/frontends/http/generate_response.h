// SPDX-License-Identifier: Apache-2.0
// From a core::Response to the JSON object of a generate reply: id, model_name, model_version,
// response parameters and outputs side by side, in the order of their names. An output of one
// element is that element, any other a flat list.
#pragma once

#include <string>

#include "base/status.h"
#include "core/response.h"

namespace nereid::http {

// Appends the object to `json`; after an error `json` is unusable. REQUIRES: the response is not an
// error.
base::Status AppendGenerateResponse(const core::Response& response, std::string& json);

}  // namespace nereid::http
