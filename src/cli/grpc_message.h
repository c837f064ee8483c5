// SPDX-License-Identifier: Apache-2.0
// Requests for inference as gRPC sends them (ModelInferRequest of KServe v2), written by hand: the
// commands need this one message, and generated code for it is part of a module above this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/infer_inputs.h"

namespace nereid::cli {

// Returns the message. REQUIRES: the inputs are bytes, not JSON. `parameters` are "NAME=VALUE",
// with a number, a boolean or a text for VALUE.
std::string GrpcInferMessage(std::string_view model, std::string_view version,
                             const std::vector<std::string>& parameters,
                             const std::vector<InferInput>& inputs);

}  // namespace nereid::cli
