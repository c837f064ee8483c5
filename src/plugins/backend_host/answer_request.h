// SPDX-License-Identifier: Apache-2.0
// Hands answers to a request's sink, and keeps a faulty backend from answering twice.
//
// A request that its backend releases without ever sending a final answer gets none from here
// either: its sink learns of it by OnRequestGone, and treats that as an internal error ("expected a
// single response, got 0" where the model is not decoupled).
#pragma once

#include "base/status.h"
#include "core/request.h"
#include "core/response.h"

namespace nereid::backend_host {

// Sends `response`. It is dropped, with an error, when the final answer was sent before.
base::Status SendResponse(core::ResponsePtr response, bool is_final);

// Tells the request's sink that no more responses follow.
base::Status SendEnd(core::Request& request);

}  // namespace nereid::backend_host
