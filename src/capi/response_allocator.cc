// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_ResponseAllocator*
#include "capi/response_allocator.h"

#include "abi_objects/error.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::Status;

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorNew(
    TRITONSERVER_ResponseAllocator** allocator, TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
    TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
    TRITONSERVER_ResponseAllocatorStartFn_t start_fn) {
  return RunApiCall([&]() -> Status {
    *allocator = nullptr;
    *allocator = new TRITONSERVER_ResponseAllocator{
        .allocate = alloc_fn, .release = release_fn, .start = start_fn};
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator* allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn) {
  allocator->describe_buffer = buffer_attributes_fn;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetQueryFunction(
    TRITONSERVER_ResponseAllocator* allocator, TRITONSERVER_ResponseAllocatorQueryFn_t query_fn) {
  allocator->query = query_fn;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorDelete(
    TRITONSERVER_ResponseAllocator* allocator) {
  delete allocator;
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
