// SPDX-License-Identifier: Apache-2.0
// Checks a request against its model and puts it into the form schedulers and backends rely on.
// Every text is one that Triton's clients know (core/src/infer_request.cc, Normalize and what it
// calls).
#pragma once

#include "base/status.h"
#include "core/request.h"

namespace nereid::engine {

// Needs request.model. Afterwards inputs stand in the model's order with model_index set and
// reshapes applied, requested outputs have their model_index, batch_size is set, and every input
// holds exactly the bytes that its shape says. Allocates only to describe an error, whose text
// carries the request's prefix where Triton's does: everywhere but for unknown names.
base::Status NormalizeRequest(core::Request& request);

}  // namespace nereid::engine
