// SPDX-License-Identifier: Apache-2.0
// What TRITONSERVER_InferenceResponse* points to: a core::Response whose ResponsePtr was released.
#pragma once

#include "core/response.h"
#include "triton/core/tritonserver.h"

namespace nereid::capi {

inline TRITONSERVER_InferenceResponse* ToHandle(core::Response* response) {
  return reinterpret_cast<TRITONSERVER_InferenceResponse*>(response);
}
inline core::Response* FromHandle(TRITONSERVER_InferenceResponse* response) {
  return reinterpret_cast<core::Response*>(response);
}

}  // namespace nereid::capi
