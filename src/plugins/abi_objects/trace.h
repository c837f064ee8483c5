// SPDX-License-Identifier: Apache-2.0
// Traces in the C API.
#pragma once

#include "observe/trace.h"
#include "triton/core/tritonserver.h"

namespace nereid::abi_objects {

inline TRITONSERVER_InferenceTrace* ToHandle(observe::Trace* trace) {
  return reinterpret_cast<TRITONSERVER_InferenceTrace*>(trace);
}
inline observe::Trace* FromHandle(TRITONSERVER_InferenceTrace* trace) {
  return reinterpret_cast<observe::Trace*>(trace);
}

}  // namespace nereid::abi_objects
