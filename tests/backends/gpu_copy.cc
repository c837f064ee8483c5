// SPDX-License-Identifier: Apache-2.0
// A backend that uses a GPU as the authors of backends do, with the CUDA driver alone: it copies
// INPUT (UINT8, [-1]) to OUTPUT on the instance's device. Each response says in parameters where
// its data was:
//
//   input_type, input_id, output_type, output_id   kinds of memory and device ids
//   instance_kind, instance_device                 of the instance
//   has_ipc_handle                                 whether the input's IPC handle was told
//
// A request's parameter "stage" lets the data pass through pinned memory and memory of the GPU that
// the server's memory manager gives.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "triton/core/tritonbackend.h"

namespace {

#define TRY(X)                                         \
  do {                                                 \
    if (TRITONSERVER_Error* error = (X)) return error; \
  } while (false)

using Address = unsigned long long;

struct Driver {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  template <typename Function>
  Function* Find(const char* name) const {
    return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
  }
  int (*retain)(void**, int) = Find<int(void**, int)>("cuDevicePrimaryCtxRetain");
  int (*push)(void*) = Find<int(void*)>("cuCtxPushCurrent_v2");
  int (*pop)(void**) = Find<int(void**)>("cuCtxPopCurrent_v2");
  int (*create_stream)(void**, unsigned) = Find<int(void**, unsigned)>("cuStreamCreate");
  int (*destroy_stream)(void*) = Find<int(void*)>("cuStreamDestroy_v2");
  int (*copy)(Address, Address, size_t,
              void*) = Find<int(Address, Address, size_t, void*)>("cuMemcpyAsync");
  int (*synchronize)(void*) = Find<int(void*)>("cuStreamSynchronize");
};

const Driver& driver() {
  static const Driver opened;
  return opened;
}

struct Instance {
  TRITONBACKEND_MemoryManager* manager = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device = 0;
  void* context = nullptr;
  void* stream = nullptr;
};

TRITONSERVER_Error* Check(int result, const char* what) {
  if (result == 0) return nullptr;
  const std::string text = std::string(what) + " failed with CUDA error " + std::to_string(result);
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, text.c_str());
}

Address AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

TRITONSERVER_Error* Copy(const Instance& instance, void* to, const void* from, size_t size) {
  if (instance.kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
    std::memcpy(to, from, size);
    return nullptr;
  }
  void* popped = nullptr;
  TRY(Check(driver().push(instance.context), "cuCtxPushCurrent"));
  int result = driver().copy(AddressOf(to), AddressOf(from), size, instance.stream);
  if (result == 0) result = driver().synchronize(instance.stream);
  driver().pop(&popped);
  return Check(result, "the copy");
}

// Memory of the server's memory manager for a scope.
struct Loan {
  Loan(const Instance& instance, TRITONSERVER_MemoryType type, size_t size)
      : manager(instance.manager), type(type), id(instance.device) {
    error = TRITONBACKEND_MemoryManagerAllocate(manager, &data, type, id, size);
  }
  ~Loan() {
    if (data != nullptr) {
      TRITONSERVER_ErrorDelete(TRITONBACKEND_MemoryManagerFree(manager, data, type, id));
    }
  }
  TRITONBACKEND_MemoryManager* manager;
  TRITONSERVER_MemoryType type;
  int64_t id;
  void* data = nullptr;
  TRITONSERVER_Error* error = nullptr;
};

TRITONSERVER_Error* Stage(const Instance& instance, void* to, const void* from, size_t size) {
  const Loan pinned(instance, TRITONSERVER_MEMORY_CPU_PINNED, size);
  TRY(pinned.error);
  const Loan device(instance, TRITONSERVER_MEMORY_GPU, size);
  TRY(device.error);
  TRY(Copy(instance, pinned.data, from, size));
  TRY(Copy(instance, device.data, pinned.data, size));
  return Copy(instance, to, device.data, size);
}

TRITONSERVER_Error* Describe(TRITONBACKEND_Response* response, const Instance& instance,
                             TRITONSERVER_MemoryType input_type, int64_t input_id,
                             TRITONSERVER_MemoryType output_type, int64_t output_id,
                             bool has_handle) {
  TRY(TRITONBACKEND_ResponseSetStringParameter(response, "input_type",
                                               TRITONSERVER_MemoryTypeString(input_type)));
  TRY(TRITONBACKEND_ResponseSetIntParameter(response, "input_id", input_id));
  TRY(TRITONBACKEND_ResponseSetStringParameter(response, "output_type",
                                               TRITONSERVER_MemoryTypeString(output_type)));
  TRY(TRITONBACKEND_ResponseSetIntParameter(response, "output_id", output_id));
  TRY(TRITONBACKEND_ResponseSetStringParameter(
      response, "instance_kind", TRITONSERVER_InstanceGroupKindString(instance.kind)));
  TRY(TRITONBACKEND_ResponseSetIntParameter(response, "instance_device", instance.device));
  return TRITONBACKEND_ResponseSetBoolParameter(response, "has_ipc_handle", has_handle);
}

TRITONSERVER_Error* Fill(const Instance& instance, TRITONBACKEND_Request* request,
                         TRITONBACKEND_Response* response) {
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "INPUT", &input));
  const void* from = nullptr;
  uint64_t size = 0;
  TRITONSERVER_MemoryType input_type = TRITONSERVER_MEMORY_GPU;
  int64_t input_id = instance.device;
  TRY(TRITONBACKEND_InputBuffer(input, 0, &from, &size, &input_type, &input_id));
  TRITONSERVER_BufferAttributes* attributes = nullptr;
  TRY(TRITONBACKEND_InputBufferAttributes(input, 0, &from, &attributes));
  void* handle = nullptr;
  TRY(TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &handle));
  const int64_t shape[] = {static_cast<int64_t>(size)};
  TRITONBACKEND_Output* output = nullptr;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT", TRITONSERVER_TYPE_UINT8, shape, 1));
  void* to = nullptr;
  const bool is_gpu = instance.kind == TRITONSERVER_INSTANCEGROUPKIND_GPU;
  TRITONSERVER_MemoryType output_type = is_gpu ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
  int64_t output_id = instance.device;
  TRY(TRITONBACKEND_OutputBuffer(output, &to, size, &output_type, &output_id));
  uint32_t parameters = 0;
  TRY(TRITONBACKEND_RequestParameterCount(request, &parameters));
  TRY(parameters > 0 ? Stage(instance, to, from, size) : Copy(instance, to, from, size));
  return Describe(response, instance, input_type, input_id, output_type, output_id,
                  handle != nullptr);
}

TRITONSERVER_Error* Serve(const Instance& instance, TRITONBACKEND_Request* request) {
  TRITONBACKEND_Response* response = nullptr;
  TRY(TRITONBACKEND_ResponseNew(&response, request));
  TRITONSERVER_Error* const failure = Fill(instance, request, response);
  TRY(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, failure));
  TRITONSERVER_ErrorDelete(failure);
  return TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* handle) {
  TRITONBACKEND_Model* model = nullptr;
  TRITONBACKEND_Backend* backend = nullptr;
  TRY(TRITONBACKEND_ModelInstanceModel(handle, &model));
  TRY(TRITONBACKEND_ModelBackend(model, &backend));
  auto instance = std::make_unique<Instance>();
  TRY(TRITONBACKEND_BackendMemoryManager(backend, &instance->manager));
  TRY(TRITONBACKEND_ModelInstanceKind(handle, &instance->kind));
  TRY(TRITONBACKEND_ModelInstanceDeviceId(handle, &instance->device));
  if (instance->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
    TRY(Check(driver().retain(&instance->context, instance->device), "cuDevicePrimaryCtxRetain"));
    TRY(Check(driver().push(instance->context), "cuCtxPushCurrent"));
    void* popped = nullptr;
    const int result = driver().create_stream(&instance->stream, 1);
    driver().pop(&popped);
    TRY(Check(result, "cuStreamCreate"));
  }
  return TRITONBACKEND_ModelInstanceSetState(handle, instance.release());
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* handle) {
  void* state = nullptr;
  TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
  auto* const instance = static_cast<Instance*>(state);
  if (instance->stream != nullptr) driver().destroy_stream(instance->stream);
  delete instance;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* handle,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t count) {
  void* state = nullptr;
  TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
  for (uint32_t r = 0; r < count; ++r) {
    TRITONSERVER_ErrorDelete(Serve(*static_cast<Instance*>(state), requests[r]));
  }
  return nullptr;
}

}  // extern "C"
