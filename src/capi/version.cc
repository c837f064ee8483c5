// SPDX-License-Identifier: Apache-2.0
// The version of the in-process API.
#include "triton/core/tritonserver.h"

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONSERVER_API_VERSION_MAJOR;
  *minor = TRITONSERVER_API_VERSION_MINOR;
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
