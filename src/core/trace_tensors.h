// SPDX-License-Identifier: Apache-2.0
// Tensors in traces.
#pragma once

#include "core/request.h"
#include "core/response.h"

namespace nereid::core {

// Report the inputs of a traced request, and the outputs of a response to one.
void TraceInputs(const Request& request);
void TraceOutputs(observe::Trace& trace, const Response& response);

}  // namespace nereid::core
