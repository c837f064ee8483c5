// SPDX-License-Identifier: Apache-2.0
// From a parsed ModelInferRequest to a core::Request: parameters by Triton's rules, tensors as
// views of the message, typed contents written once into the request's arena.
#pragma once

#include "base/status.h"
#include "core/request.h"
#include "grpc/infer_message.h"

namespace nereid::grpc {

// What the client wants besides the inference.
struct InferOptions {
  bool wants_empty_final_response = false;
};

// Fills `request`, whose model is set and which holds the message's bytes. The tag of a requested
// output is its class count, 0 for the tensor itself. The errors and their texts are Triton's.
base::Result<InferOptions> FillRequest(const InferMessage& message, core::Request& request);

}  // namespace nereid::grpc
