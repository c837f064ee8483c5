// SPDX-License-Identifier: Apache-2.0
// What a C API function answers while nothing implements it.
//
// libtritonserver.so exports every function of the four headers, so that a plug-in or an embedder
// links and is told by name what is missing. unsupported_*.cc define all of them weakly; a strong
// definition anywhere else in the library replaces the weak one at link time, and nothing here
// needs to change when a function starts to work. For that, the archive with the strong definition
// must be linked whole, and the definition must have default visibility: the linker gives a merged
// symbol the narrower of the two.
#pragma once

#include <string>

#include "triton/core/tritonserver.h"

namespace nereid::capi {

// Returns a new TRITONSERVER_ERROR_UNSUPPORTED that names `function`. The caller owns the error.
inline TRITONSERVER_Error* Unsupported(const char* function) {
  const std::string message = std::string(function) + " is not supported";
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, message.c_str());
}

}  // namespace nereid::capi
