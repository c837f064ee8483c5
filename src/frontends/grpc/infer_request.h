// SPDX-License-Identifier: Apache-2.0
// From a parsed ModelInferRequest to a core::Request: parameters by Triton's rules, tensors as
// views of the message, typed contents written once into the request's arena.
#pragma once

#include "base/status.h"
#include "core/request.h"
#include "grpc/infer_message.h"
#include "memory/region_table.h"

namespace nereid::grpc {

// The client's options besides the inference itself.
struct InferOptions {
  bool wants_empty_final_response = false;
};

// The tag of a requested output is its class count, 0 for the tensor itself, or this number if the
// tensor goes into shared memory and the response only says so.
inline constexpr uint32_t kInRegionTag = UINT32_MAX;

// Fills `request`, whose model is set and which holds the message's bytes. Looks up tensors in
// shared memory in `regions`, which outlives the request and may be null. The errors and their
// texts are Triton's.
base::Result<InferOptions> FillRequest(const InferMessage& message, core::Request& request,
                                       memory::RegionTable* regions = nullptr);

}  // namespace nereid::grpc
