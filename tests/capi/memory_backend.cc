// SPDX-License-Identifier: Apache-2.0
// A backend whose models take memory while they are loaded: 32 MiB, or 96 MiB if their names begin
// with "large". It answers every request with a response without outputs.
#include <cstring>
#include <vector>

#include "triton/core/tritonbackend.h"

namespace {

// Allocators ask the system for so much each time, and give it back at once.
constexpr size_t kSmallBytes = size_t{32} << 20;
constexpr size_t kLargeBytes = size_t{96} << 20;

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  const char* name = nullptr;
  if (TRITONSERVER_Error* error = TRITONBACKEND_ModelName(model, &name)) return error;
  const bool is_large = std::strncmp(name, "large", 5) == 0;
  // Written to, so that the system has to find memory for it.
  return TRITONBACKEND_ModelSetState(
      model, new std::vector<char>(is_large ? kLargeBytes : kSmallBytes, 'x'));
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  void* state = nullptr;
  if (TRITONSERVER_Error* error = TRITONBACKEND_ModelState(model, &state)) return error;
  delete static_cast<std::vector<char>*>(state);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance*,
                                                       TRITONBACKEND_Request** requests,
                                                       uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Response* response = nullptr;
    TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, requests[i]);
    if (error == nullptr) {
      error = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, nullptr);
    }
    if (error != nullptr) TRITONSERVER_ErrorDelete(error);
    error = TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL);
    if (error != nullptr) TRITONSERVER_ErrorDelete(error);
  }
  return nullptr;
}

}  // extern "C"
