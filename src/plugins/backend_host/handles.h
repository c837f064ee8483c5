// SPDX-License-Identifier: Apache-2.0
// The opaque pointers of the backend API and the objects behind them, with conversions in both
// directions.
#pragma once

#include "abi_objects/buffer_attributes.h"
#include "core/release_scope.h"
#include "core/request.h"
#include "core/response.h"
#include "core/sequence_states.h"
#include "triton/core/tritonbackend.h"

namespace nereid::backend_host {

class BackendLibrary;
class BackendModel;
class PluginInstance;
struct BackendAttributes;

// Makes responses for a request that may already be released.
struct ResponseFactory {
  core::RequestRef request;
  uint64_t responses_reported = 0;  // in statistics
};

// A new value of an implicit state that a backend is writing. Trivially destructible; in the
// request's arena.
struct OutputState {
  core::SequenceState* value;
  TRITONSERVER_BufferAttributes attributes;
};

#define NEREID_HANDLE(Handle, Object)                                                   \
  inline Handle* ToHandle(Object* object) { return reinterpret_cast<Handle*>(object); } \
  inline Object* FromHandle(Handle* handle) { return reinterpret_cast<Object*>(handle); }

NEREID_HANDLE(TRITONBACKEND_Backend, BackendLibrary)
NEREID_HANDLE(TRITONBACKEND_BackendAttribute, BackendAttributes)
NEREID_HANDLE(TRITONBACKEND_Model, BackendModel)
NEREID_HANDLE(TRITONBACKEND_ModelInstance, PluginInstance)
// A handle is a request whose RequestPtr was released to the backend.
NEREID_HANDLE(TRITONBACKEND_Request, core::Request)
NEREID_HANDLE(TRITONBACKEND_Input, core::RequestInput)
NEREID_HANDLE(TRITONBACKEND_Response, core::Response)
NEREID_HANDLE(TRITONBACKEND_Output, core::ResponseOutput)
NEREID_HANDLE(TRITONBACKEND_ResponseFactory, ResponseFactory)
NEREID_HANDLE(TRITONBACKEND_State, OutputState)

#undef NEREID_HANDLE

// FromAnyHandle reads a pointer to either class of request as one to its RequestHandle, which is
// correct only if that lies at offset 0. The compiler checks the offset here for core::Request, and
// in capi/inference_request.h for TRITONSERVER_InferenceRequest.
extern core::Request layout_probe;  // declared for its address, never defined
static_assert(static_cast<void*>(static_cast<core::RequestHandle*>(&layout_probe)) ==
              static_cast<void*>(&layout_probe));

// For functions that accept an embedder's request, too, and need only the common base.
inline core::RequestHandle& FromAnyHandle(TRITONBACKEND_Request* handle) {
  return *reinterpret_cast<core::RequestHandle*>(handle);
}

// Whether a backend has released `request`. In the same execution the released request still exists
// (core::ReleaseScope); later, the object may have been cleared for the next client's request.
inline bool IsReleased(const core::Request& request) {
  return core::ReleaseScope::IsReleased(request) || !request.model;
}
inline base::Status ReleasedError() {
  return base::InvalidArgumentError("the request has been released already");
}

}  // namespace nereid::backend_host
