// SPDX-License-Identifier: Apache-2.0
// From a parsed ModelInferRequest to a core::Request: parameters by Triton's rules, tensors as
// views of the message, typed contents written once into the request's arena.
#pragma once

#include "base/status.h"
#include "core/request.h"
#include "grpc/infer_message.h"
#include "memory/region_table.h"

namespace nereid::grpc {

// What the client wants besides the inference.
struct InferOptions {
  bool wants_empty_final_response = false;
};

// The tag of a requested output is its class count, 0 for the tensor itself, or this when the
// tensor goes into shared memory and the response says only that it is there.
inline constexpr uint32_t kInRegionTag = UINT32_MAX;

// Fills `request`, whose model is set and which holds the message's bytes. Tensors in shared memory
// are looked up in `regions`, null where there are none; it outlives the request. The errors and
// their texts are Triton's.
base::Result<InferOptions> FillRequest(const InferMessage& message, core::Request& request,
                                       memory::RegionTable* regions = nullptr);

}  // namespace nereid::grpc
