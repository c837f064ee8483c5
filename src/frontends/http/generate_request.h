// SPDX-License-Identifier: Apache-2.0
// From the body of POST .../generate and .../generate_stream to a core::Request: keys that name an
// input of the model become tensors of its type and shape, all others become parameters; the
// members of an object `parameters` count as if they were beside it.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "core/request.h"

namespace nereid::http {

// Fills `request`, whose model is set. An error leaves it partly filled.
base::Status ReadGenerateRequest(std::string_view json, size_t max_input_bytes,
                                 core::Request& request);

}  // namespace nereid::http
