// SPDX-License-Identifier: Apache-2.0
// A backend for models with one input COUNT (INT32, [1]) and one output NUMBER (INT32, [1]): it
// sends COUNT responses, numbered from 0, whatever the model's transaction policy is. The last one
// has the final flag; with the request parameter "apart", the final flag is sent separately after
// it, and with the parameter "endless" never.
#include <cstring>

#include "triton/core/tritonbackend.h"

namespace {

#define TRY(X)                                         \
  do {                                                 \
    if (TRITONSERVER_Error* error = (X)) return error; \
  } while (false)

TRITONSERVER_Error* ReadCount(TRITONBACKEND_Request* request, int32_t* count) {
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "COUNT", &input));
  const void* buffer = nullptr;
  uint64_t bytes = 0;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_InputBuffer(input, 0, &buffer, &bytes, &type, &id));
  std::memcpy(count, buffer, sizeof(*count));
  return nullptr;
}

TRITONSERVER_Error* Send(TRITONBACKEND_ResponseFactory* factory, int32_t number, uint32_t flags) {
  TRITONBACKEND_Response* response = nullptr;
  TRY(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
  const int64_t shape[] = {1};
  TRITONBACKEND_Output* output = nullptr;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "NUMBER", TRITONSERVER_TYPE_INT32, shape, 1));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_OutputBuffer(output, &buffer, sizeof(number), &type, &id));
  std::memcpy(buffer, &number, sizeof(number));
  return TRITONBACKEND_ResponseSend(response, flags, nullptr);
}

TRITONSERVER_Error* Serve(TRITONBACKEND_Request* request) {
  int32_t count = 0;
  TRY(ReadCount(request, &count));
  uint32_t parameters = 0;
  TRY(TRITONBACKEND_RequestParameterCount(request, &parameters));
  bool is_endless = false;
  for (uint32_t i = 0; i < parameters; ++i) {
    const char* name = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_BOOL;
    const void* value = nullptr;
    TRY(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value));
    is_endless = is_endless || std::strcmp(name, "endless") == 0;
  }
  const bool is_apart = parameters > 0 || count == 0;
  TRITONBACKEND_ResponseFactory* factory = nullptr;
  TRY(TRITONBACKEND_ResponseFactoryNew(&factory, request));
  for (int32_t i = 0; i < count; ++i) {
    const bool is_final = !is_apart && i + 1 == count;
    TRY(Send(factory, i, is_final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0));
  }
  if (is_apart && !is_endless) {
    TRY(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
  }
  TRY(TRITONBACKEND_ResponseFactoryDelete(factory));
  return TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* /*instance*/,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  for (uint32_t r = 0; r < request_count; ++r) TRITONSERVER_ErrorDelete(Serve(requests[r]));
  return nullptr;
}

}  // extern "C"
