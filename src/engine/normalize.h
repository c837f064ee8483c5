// SPDX-License-Identifier: Apache-2.0
// Validates a request against its model and brings it into the form that schedulers and backends
// rely on. Every error text is one that Triton's clients know (core/src/infer_request.cc, Normalize
// and what it calls).
#pragma once

#include "base/status.h"
#include "core/request.h"

namespace nereid::engine {

// REQUIRES: request.model is set. Afterwards inputs are in the model's order with model_index set
// and reshapes applied, requested outputs have their model_index, batch_size is set, and every
// input holds exactly the bytes that its shape requires. Allocates only to describe an error, whose
// text has the request's prefix where Triton's does: everywhere except for unknown names.
base::Status NormalizeRequest(core::Request& request);

}  // namespace nereid::engine
