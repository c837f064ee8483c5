// SPDX-License-Identifier: Apache-2.0
// A backend for models with one input SIZE (INT32, [1]) and one output BYTES (UINT8, [-1]): it
// requests a buffer of SIZE bytes and writes only the first byte. It is not ready while there is a
// file "not_ready" in the model's folder. It says that the model holds 1000 bytes of a GPU's memory
// and each instance 10 bytes of the machine's.
#include <unistd.h>

#include <cstring>
#include <string>

#include "triton/core/tritonbackend.h"

namespace {

#define TRY(X)                                         \
  do {                                                 \
    if (TRITONSERVER_Error* error = (X)) return error; \
  } while (false)

TRITONSERVER_Error* ReadSize(TRITONBACKEND_Request* request, int32_t* size) {
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "SIZE", &input));
  const void* buffer = nullptr;
  uint64_t bytes = 0;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_InputBuffer(input, 0, &buffer, &bytes, &type, &id));
  if (bytes != sizeof(*size)) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "SIZE is one number");
  }
  std::memcpy(size, buffer, sizeof(*size));
  return nullptr;
}

TRITONSERVER_Error* Fill(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response) {
  int32_t size = 0;
  TRY(ReadSize(request, &size));
  const int64_t shape[] = {size};
  TRITONBACKEND_Output* output = nullptr;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "BYTES", TRITONSERVER_TYPE_UINT8, shape, 1));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_OutputBuffer(output, &buffer, static_cast<uint64_t>(size), &type, &id));
  if (size > 0) *static_cast<unsigned char*>(buffer) = 1;
  return nullptr;
}

template <typename Handle>
TRITONSERVER_Error* ReportMemory(TRITONSERVER_Error* (*report)(Handle*,
                                                               TRITONSERVER_BufferAttributes**,
                                                               uint32_t),
                                 Handle* handle, TRITONSERVER_MemoryType type, size_t bytes) {
  TRITONSERVER_BufferAttributes* use = nullptr;
  TRY(TRITONSERVER_BufferAttributesNew(&use));
  TRY(TRITONSERVER_BufferAttributesSetMemoryType(use, type));
  TRY(TRITONSERVER_BufferAttributesSetMemoryTypeId(use, 0));
  TRY(TRITONSERVER_BufferAttributesSetByteSize(use, bytes));
  TRY(report(handle, &use, 1));
  return TRITONSERVER_BufferAttributesDelete(use);
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return ReportMemory(TRITONBACKEND_ModelReportMemoryUsage, model, TRITONSERVER_MEMORY_GPU, 1000);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return ReportMemory(TRITONBACKEND_ModelInstanceReportMemoryUsage, instance,
                      TRITONSERVER_MEMORY_CPU, 10);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance* instance) {
  TRITONBACKEND_Model* model = nullptr;
  TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* folder = nullptr;
  TRY(TRITONBACKEND_ModelRepository(model, &type, &folder));
  if (access((std::string(folder) + "/not_ready").c_str(), F_OK) == 0) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "there is a file not_ready");
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance*,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  for (uint32_t r = 0; r < request_count; ++r) {
    TRITONBACKEND_Response* response = nullptr;
    TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, requests[r]);
    if (error == nullptr) {
      error = Fill(requests[r], response);
      TRITONSERVER_ErrorDelete(
          TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    }
    TRITONSERVER_ErrorDelete(error);
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_RequestRelease(requests[r], TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  return nullptr;
}

}  // extern "C"
