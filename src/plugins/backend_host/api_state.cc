// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_State*: the new value of an implicit state. The object is in its request's memory.
#include <new>
#include <span>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "backend_host/handles.h"
#include "core/model.h"
#include "core/sequence_states.h"

using nereid::abi_objects::RunApiCall;
using nereid::backend_host::FromHandle;
using nereid::backend_host::OutputState;
using nereid::backend_host::ToHandle;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;
using nereid::core::Request;
using nereid::core::SequenceState;

// States are in CPU memory, whatever a backend prefers; each call reports that to the backend.

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_StateNew(TRITONBACKEND_State** state,
                                           TRITONBACKEND_Request* request, const char* name,
                                           const TRITONSERVER_DataType datatype,
                                           const int64_t* shape, const uint32_t dims_count) {
  return RunApiCall([&]() -> Status {
    *state = nullptr;
    Request& r = *FromHandle(request);
    if (r.states == nullptr) {
      return InvalidArgumentError("unable to add state '" + std::string(name) +
                                  "'. State configuration is missing for model '" +
                                  r.model->name() + "'.");
    }
    if (datatype <= TRITONSERVER_TYPE_INVALID || datatype >= nereid::tensor::kDataTypeCount) {
      return InvalidArgumentError("invalid data type of state '" + std::string(name) + "'");
    }
    NEREID_ASSIGN_OR_RETURN(SequenceState* const value,
                            r.states->New(name, static_cast<nereid::tensor::DataType>(datatype),
                                          std::span(shape, dims_count)));
    std::byte* const place = r.arena().Allocate(sizeof(OutputState), alignof(OutputState));
    if (place == nullptr) throw std::bad_alloc();
    *state = ToHandle(new (place) OutputState{.value = value, .attributes = {}});
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_StateBuffer(TRITONBACKEND_State* state, void** buffer,
                                              const uint64_t buffer_byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  return RunApiCall([&]() -> Status {
    *buffer = nullptr;
    NEREID_ASSIGN_OR_RETURN(*buffer, FromHandle(state)->value->Buffer(buffer_byte_size));
    *memory_type = TRITONSERVER_MEMORY_CPU;
    *memory_type_id = 0;
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_StateBufferAttributes(
    TRITONBACKEND_State* state, TRITONSERVER_BufferAttributes** buffer_attributes) {
  OutputState& s = *FromHandle(state);
  s.attributes.byte_size = s.value->buffer_byte_size();
  *buffer_attributes = &s.attributes;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state) {
  return RunApiCall([&] { return FromHandle(state)->value->Update(); });
}

}  // extern "C"
#pragma GCC visibility pop
