// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_InferenceRequest* and TRITONSERVER_ServerInferAsync: the functions around
// inference_request.h. Texts: core/src/tritonserver.cc of Triton.
#include <cstring>
#include <limits>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "capi/inference_request.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;
using nereid::core::DataChunk;

namespace {

// Longer sequence ids are refused.
constexpr size_t kMaxCorrelationIdBytes = 128;

nereid::base::Result<DataChunk> ToChunk(const void* base, size_t byte_size,
                                        TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
                                        void* cuda_ipc_handle) {
  const auto type = nereid::abi_objects::FromMemoryType(memory_type);
  if (!type) return InvalidArgumentError("unknown memory type of input data");
  if (base == nullptr && byte_size > 0) return InvalidArgumentError("input data is null");
  return DataChunk{.data = static_cast<const std::byte*>(base),
                   .size = byte_size,
                   .where = {.type = *type, .id = memory_type_id},
                   .cuda_ipc_handle = cuda_ipc_handle};
}

TRITONSERVER_Error* Append(TRITONSERVER_InferenceRequest* request, const char* name,
                           const void* base, size_t byte_size, TRITONSERVER_MemoryType memory_type,
                           int64_t memory_type_id, const char* policy,
                           void* cuda_ipc_handle = nullptr) {
  return RunApiCall([&]() -> Status {
    NEREID_ASSIGN_OR_RETURN(const DataChunk chunk,
                            ToChunk(base, byte_size, memory_type, memory_type_id, cuda_ipc_handle));
    return request->AppendData(name, chunk, policy);
  });
}

template <typename Value>
TRITONSERVER_Error* AddParameter(TRITONSERVER_InferenceRequest* request, const char* key,
                                 Value value) {
  return RunApiCall([&]() -> Status {
    request->AddParameter(key, std::move(value));
    return {};
  });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_InferenceRequestNew(
    TRITONSERVER_InferenceRequest** inference_request, TRITONSERVER_Server* server,
    const char* model_name, const int64_t model_version) {
  return RunApiCall([&]() -> Status {
    *inference_request = nullptr;
    NEREID_ASSIGN_OR_RETURN(*inference_request, TRITONSERVER_InferenceRequest::Create(
                                                    *server, model_name, model_version));
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestDelete(
    TRITONSERVER_InferenceRequest* inference_request) {
  return RunApiCall([&] { return TRITONSERVER_InferenceRequest::Delete(inference_request); });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestId(
    TRITONSERVER_InferenceRequest* inference_request, const char** id) {
  *id = inference_request->id.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetId(
    TRITONSERVER_InferenceRequest* inference_request, const char* id) {
  return RunApiCall([&]() -> Status {
    inference_request->id = id;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestFlags(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t* flags) {
  *flags = inference_request->flags;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetFlags(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t flags) {
  inference_request->flags = flags;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationId(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t* correlation_id) {
  return RunApiCall([&]() -> Status {
    const auto* const number = std::get_if<uint64_t>(&inference_request->correlation_id);
    if (number == nullptr) {
      return InvalidArgumentError("given request's correlation id is not an unsigned int");
    }
    *correlation_id = *number;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationIdString(
    TRITONSERVER_InferenceRequest* inference_request, const char** correlation_id) {
  return RunApiCall([&]() -> Status {
    const auto* const text = std::get_if<std::string>(&inference_request->correlation_id);
    if (text == nullptr) {
      return InvalidArgumentError("given request's correlation id is not a string");
    }
    *correlation_id = text->c_str();
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationId(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t correlation_id) {
  inference_request->correlation_id = correlation_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest* inference_request, const char* correlation_id) {
  return RunApiCall([&]() -> Status {
    if (std::strlen(correlation_id) > kMaxCorrelationIdBytes) {
      return nereid::base::UnsupportedError(
          "string correlation ID cannot be longer than 128 characters");
    }
    inference_request->correlation_id = std::string(correlation_id);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestCancel(
    TRITONSERVER_InferenceRequest* inference_request) {
  return RunApiCall([&] { return inference_request->Cancel(); });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestIsCancelled(
    TRITONSERVER_InferenceRequest* inference_request, bool* is_cancelled) {
  return RunApiCall([&]() -> Status {
    NEREID_ASSIGN_OR_RETURN(*is_cancelled, inference_request->IsCancelled());
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriority(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t* priority) {
  return RunApiCall([&]() -> Status {
    const uint64_t value = inference_request->priority();
    if (value > std::numeric_limits<uint32_t>::max()) {
      return InvalidArgumentError(
          "request priority overflows uint32_t, use "
          "TRITONSERVER_InferenceRequestPriorityUInt64, priority=" +
          std::to_string(value));
    }
    *priority = static_cast<uint32_t>(value);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriorityUInt64(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t* priority) {
  *priority = inference_request->priority();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriority(
    TRITONSERVER_InferenceRequest* inference_request, uint32_t priority) {
  return TRITONSERVER_InferenceRequestSetPriorityUInt64(inference_request, priority);
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriorityUInt64(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t priority) {
  inference_request->SetPriority(priority);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t* timeout_us) {
  *timeout_us = inference_request->timeout_us;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest* inference_request, uint64_t timeout_us) {
  inference_request->timeout_us = timeout_us;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddInput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name,
    const TRITONSERVER_DataType datatype, const int64_t* shape, uint64_t dim_count) {
  return RunApiCall([&]() -> Status {
    const auto value = static_cast<int>(datatype);
    const bool is_known = value >= 0 && value < nereid::tensor::kDataTypeCount;
    const auto type = is_known ? static_cast<nereid::tensor::DataType>(value)
                               : nereid::tensor::DataType::kInvalid;
    return inference_request->AddInput(name, type, {shape, dim_count});
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRawInput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  return RunApiCall([&] { return inference_request->AddRawInput(name); });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveInput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  return RunApiCall([&] { return inference_request->RemoveInput(name); });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputs(
    TRITONSERVER_InferenceRequest* inference_request) {
  inference_request->RemoveAllInputs();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id) {
  return Append(inference_request, name, base, byte_size, memory_type, memory_type_id, "");
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char* host_policy_name) {
  return Append(inference_request, name, base, byte_size, memory_type, memory_type_id,
                host_policy_name);
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    TRITONSERVER_BufferAttributes* buffer_attributes) {
  return Append(inference_request, name, base, buffer_attributes->byte_size,
                buffer_attributes->memory_type, buffer_attributes->memory_type_id, "",
                buffer_attributes->cuda_ipc_handle);
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputData(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  return RunApiCall([&] { return inference_request->RemoveAllData(name); });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRequestedOutput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  return RunApiCall([&] { return inference_request->AddOutput(name); });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveRequestedOutput(
    TRITONSERVER_InferenceRequest* inference_request, const char* name) {
  return RunApiCall([&]() -> Status {
    inference_request->RemoveOutput(name);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest* inference_request) {
  inference_request->RemoveAllOutputs();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest* inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void* request_release_userp) {
  inference_request->callbacks.release = request_release_fn;
  inference_request->callbacks.release_userp = request_release_userp;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest* inference_request,
    TRITONSERVER_ResponseAllocator* response_allocator, void* response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void* response_userp) {
  nereid::capi::Callbacks& callbacks = inference_request->callbacks;
  callbacks.allocator = response_allocator;
  callbacks.allocator_userp = response_allocator_userp;
  callbacks.respond = response_fn;
  callbacks.respond_userp = response_userp;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, const char* value) {
  return AddParameter(request, key, std::string(value));
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetIntParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, const int64_t value) {
  return AddParameter(request, key, value);
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetBoolParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, const bool value) {
  return AddParameter(request, key, value);
}

TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetDoubleParameter(
    TRITONSERVER_InferenceRequest* request, const char* key, const double value) {
  return AddParameter(request, key, value);
}

TRITONSERVER_Error* TRITONSERVER_ServerInferAsync(TRITONSERVER_Server* /*server*/,
                                                  TRITONSERVER_InferenceRequest* inference_request,
                                                  TRITONSERVER_InferenceTrace* trace) {
  // The request knows the server that its model is loaded in.
  return RunApiCall([&] { return inference_request->Submit(trace); });
}

}  // extern "C"
#pragma GCC visibility pop
