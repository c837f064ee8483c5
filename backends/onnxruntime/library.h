// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's library, which is opened when the backend starts: a file that the environment
// variable NEREID_ONNXRUNTIME_LIBRARY names, as the Python package does (the library in a wheel has
// a name of its own for each version), or else libonnxruntime.so.1, found as any library of the
// backend.
#pragma once

#include <onnxruntime_c_api.h>

#include "backend_kit/error.h"
#include "backend_kit/framework.h"

namespace nereid::onnxruntime {

// Opens the library unless that was done before; it is never closed. Thread-safe.
backend::Result<const OrtApiBase*> OpenLibrary();

// The entry to the library's functions. REQUIRES: OpenLibrary succeeded.
const OrtApiBase& ApiBase();

// Opens the library, if need be, and tells its version and place.
backend::Result<backend::Framework> FindFramework();

}  // namespace nereid::onnxruntime
