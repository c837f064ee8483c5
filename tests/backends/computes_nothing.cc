// SPDX-License-Identifier: Apache-2.0
// The execution of backends that are only to be opened: each request gets an error.
#include "triton/core/tritonbackend.h"

extern "C" TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance*,
                                                                  TRITONBACKEND_Request** requests,
                                                                  const uint32_t request_count) {
  for (uint32_t r = 0; r < request_count; ++r) {
    TRITONBACKEND_Response* response = nullptr;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseNew(&response, requests[r]));
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(
        response, TRITONSERVER_RESPONSE_COMPLETE_FINAL,
        TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "this backend computes nothing")));
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_RequestRelease(requests[r], TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  return nullptr;
}
