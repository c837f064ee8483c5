// SPDX-License-Identifier: Apache-2.0
// Passes responses to a request's sink, and keeps a faulty backend from sending a second final
// response.
//
// A request that its backend releases without a final response gets none from here either: its sink
// learns of that by OnRequestGone, and treats it as an internal error ("expected a single response,
// got 0" if the model is not decoupled).
#pragma once

#include "base/status.h"
#include "core/request.h"
#include "core/response.h"

namespace nereid::backend_host {

// Sends `response`. Drops it and fails if the final response was sent before.
base::Status SendResponse(core::ResponsePtr response, bool is_final);

// Tells the request's sink that no more responses follow.
base::Status SendEnd(core::Request& request);

}  // namespace nereid::backend_host
