// SPDX-License-Identifier: Apache-2.0
// New values of implicit states (`sequence_batching.state`). The old value is an input of the
// request, named by the state's input_name.
#pragma once

#include <cstdint>
#include <span>

#include "backend_kit/error.h"
#include "backend_kit/shape.h"

namespace nereid::backend {

// A new value in preparation. Update makes it the sequence's current value.
struct NewState {
  TRITONBACKEND_State* state = nullptr;
  char* buffer = nullptr;  // `byte_size` bytes in CPU memory

  Error Update() const { return Error(TRITONBACKEND_StateUpdate(state)); }
};

// Begins a new value of the state that the configuration calls `name` (its output_name).
inline Result<NewState> MakeState(TRITONBACKEND_Request* request, const char* name,
                                  TRITONSERVER_DataType datatype, std::span<const int64_t> shape,
                                  uint64_t byte_size) {
  NewState made;
  NEREID_KIT_TRY(TRITONBACKEND_StateNew(&made.state, request, name, datatype, shape.data(),
                                        static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  NEREID_KIT_TRY(
      TRITONBACKEND_StateBuffer(made.state, &buffer, byte_size, &memory_type, &memory_type_id));
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    return Error::Unsupported(StrCat("failed to get a CPU buffer for state '", name, "'"));
  }
  made.buffer = static_cast<char*>(buffer);
  return made;
}

}  // namespace nereid::backend
