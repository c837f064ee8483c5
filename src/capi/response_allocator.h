// SPDX-License-Identifier: Apache-2.0
// The object behind TRITONSERVER_ResponseAllocator*: the embedder's functions that place outputs.
#pragma once

#include "triton/core/tritonserver.h"

// Immutable once a request uses it; as thread-safe as its functions are.
struct TRITONSERVER_ResponseAllocator {
  TRITONSERVER_ResponseAllocatorAllocFn_t allocate = nullptr;
  TRITONSERVER_ResponseAllocatorReleaseFn_t release = nullptr;
  TRITONSERVER_ResponseAllocatorStartFn_t start = nullptr;                       // may be null
  TRITONSERVER_ResponseAllocatorQueryFn_t query = nullptr;                       // may be null
  TRITONSERVER_ResponseAllocatorBufferAttributesFn_t describe_buffer = nullptr;  // may be null
};
