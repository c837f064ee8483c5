// SPDX-License-Identifier: Apache-2.0
// Tensors as traces show them.
#pragma once

#include "core/request.h"
#include "core/response.h"

namespace nereid::core {

// The inputs of a request that is traced, and the outputs of a response to one.
void TraceInputs(const Request& request);
void TraceOutputs(observe::Trace& trace, const Response& response);

}  // namespace nereid::core
