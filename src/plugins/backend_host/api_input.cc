// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_Input*: an input of a request. Only requests of the C API have separate buffers for
// host policies.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "backend_host/handles.h"
#include "core/model.h"
#include "memory/gpus.h"
#include "nereid/backend_memory.h"

using nereid::abi_objects::RunApiCall;
using nereid::abi_objects::ToMemoryType;
using nereid::backend_host::FromHandle;
using nereid::base::Status;
using nereid::core::DataChunk;
using nereid::core::RequestInput;

namespace {

// Returns a zero-terminated name. The model's names and those of inputs that the server adds are
// zero-terminated; the client's may not be.
const char* NameOf(const RequestInput& input) {
  const auto& inputs = input.owner->model->inputs();
  return input.model_index < inputs.size() ? inputs[input.model_index].name.c_str()
                                           : input.name.data();
}

// Returns the chunk at `index`. Beyond the last one it returns an empty chunk at null instead of an
// error, because Triton's backends may detect the end in this way.
DataChunk ChunkAt(const RequestInput& input, uint32_t index) {
  return index < input.chunk_count() ? input.chunk(index) : DataChunk{};
}

// Whether the input's data was freed with the release of its request.
bool IsReleased(const RequestInput& input) {
  return nereid::backend_host::IsReleased(*input.owner);
}

TRITONSERVER_Error* ReleasedError() {
  return RunApiCall([] { return nereid::backend_host::ReleasedError(); });
}

// Returns the input's data for instances of that host policy, or null if they use the common data.
const nereid::core::HostPolicyData* DataFor(const RequestInput& input, const char* policy) {
  if (input.host_policies.empty() || policy == nullptr) [[likely]]
    return nullptr;
  const auto found =
      std::ranges::find(input.host_policies, policy, &nereid::core::HostPolicyData::policy);
  return found == input.host_policies.end() ? nullptr : &*found;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* datatype,
                                                  const int64_t** shape, uint32_t* dims_count,
                                                  uint64_t* byte_size, uint32_t* buffer_count) {
  const RequestInput& i = *FromHandle(input);
  if (name != nullptr) *name = NameOf(i);
  if (datatype != nullptr) *datatype = static_cast<TRITONSERVER_DataType>(i.type);
  if (shape != nullptr) *shape = i.shape.data();
  if (dims_count != nullptr) *dims_count = static_cast<uint32_t>(i.shape.rank());
  if (byte_size != nullptr) *byte_size = i.byte_size;
  if (buffer_count != nullptr) *buffer_count = static_cast<uint32_t>(i.chunk_count());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputPropertiesForHostPolicy(
    TRITONBACKEND_Input* input, const char* host_policy_name, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint32_t* dims_count,
    uint64_t* byte_size, uint32_t* buffer_count) {
  TRITONSERVER_Error* const error = TRITONBACKEND_InputProperties(
      input, name, datatype, shape, dims_count, byte_size, buffer_count);
  const auto* const data = DataFor(*FromHandle(input), host_policy_name);
  if (error != nullptr || data == nullptr) [[likely]]
    return error;
  if (buffer_count != nullptr) *buffer_count = static_cast<uint32_t>(data->chunks.size());
  if (byte_size != nullptr) {
    *byte_size = 0;
    for (const DataChunk& chunk : data->chunks) *byte_size += chunk.size;
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index,
                                              const void** buffer, uint64_t* buffer_byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  *buffer = nullptr;
  *buffer_byte_size = 0;
  if (IsReleased(*FromHandle(input))) [[unlikely]]
    return ReleasedError();
  const DataChunk chunk = ChunkAt(*FromHandle(input), index);
  *buffer = chunk.data;
  *buffer_byte_size = chunk.size;
  *memory_type = ToMemoryType(chunk.where.type);
  *memory_type_id = chunk.where.id;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input* input, const char* host_policy_name, const uint32_t index,
    const void** buffer, uint64_t* buffer_byte_size, TRITONSERVER_MemoryType* memory_type,
    int64_t* memory_type_id) {
  *buffer = nullptr;
  *buffer_byte_size = 0;
  if (IsReleased(*FromHandle(input))) [[unlikely]]
    return ReleasedError();
  const auto* const data = DataFor(*FromHandle(input), host_policy_name);
  if (data != nullptr && index < data->chunks.size()) [[unlikely]] {
    const DataChunk& chunk = data->chunks[index];
    *buffer = chunk.data;
    *buffer_byte_size = chunk.size;
    *memory_type = ToMemoryType(chunk.where.type);
    *memory_type_id = chunk.where.id;
    return nullptr;
  }
  return TRITONBACKEND_InputBuffer(input, index, buffer, buffer_byte_size, memory_type,
                                   memory_type_id);
}

TRITONSERVER_Error* TRITONBACKEND_InputBufferAttributes(
    TRITONBACKEND_Input* input, const uint32_t index, const void** buffer,
    TRITONSERVER_BufferAttributes** buffer_attributes) {
  return RunApiCall([&]() -> Status {
    *buffer = nullptr;
    *buffer_attributes = nullptr;
    const RequestInput& i = *FromHandle(input);
    if (IsReleased(i)) return nereid::backend_host::ReleasedError();
    const DataChunk chunk = ChunkAt(i, index);
    std::byte* const place = i.owner->arena().Allocate(sizeof(TRITONSERVER_BufferAttributes),
                                                       alignof(TRITONSERVER_BufferAttributes));
    if (place == nullptr) throw std::bad_alloc();
    *buffer_attributes =
        new (place) TRITONSERVER_BufferAttributes{.memory_type = ToMemoryType(chunk.where.type),
                                                  .memory_type_id = chunk.where.id,
                                                  .byte_size = chunk.size,
                                                  .cuda_ipc_handle = chunk.cuda_ipc_handle};
    *buffer = chunk.data;
    return {};
  });
}

TRITONSERVER_Error* NEREIDBACKEND_InputCopy(TRITONBACKEND_Input* input, void* buffer,
                                            uint64_t byte_size) {
  return RunApiCall([&]() -> Status {
    const RequestInput& i = *FromHandle(input);
    if (IsReleased(i)) return nereid::backend_host::ReleasedError();
    if (i.byte_size != byte_size) {
      return nereid::base::InvalidArgumentError("input '" + std::string(i.name) + "' has " +
                                                std::to_string(i.byte_size) + " bytes, not " +
                                                std::to_string(byte_size));
    }
    const nereid::memory::Gpus* const gpus = i.owner->model->gpus();
    auto* to = static_cast<std::byte*>(buffer);
    for (size_t c = 0; c < i.chunk_count(); ++c) {
      const DataChunk& chunk = i.chunk(c);
      if (chunk.where.type != nereid::memory::MemoryType::kGpu) {
        if (chunk.size > 0) std::memcpy(to, chunk.data, chunk.size);
      } else if (gpus == nullptr) {
        return nereid::base::UnsupportedError("this server has no GPU");
      } else {
        NEREID_RETURN_IF_ERROR(gpus->Copy(to, {}, chunk.data, chunk.where, chunk.size));
      }
      to += chunk.size;
    }
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
