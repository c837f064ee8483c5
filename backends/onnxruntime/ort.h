// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's C API with owners for its objects and our kind of error.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>

#include "backend_kit/error.h"

namespace nereid::onnxruntime {

// Returns the function table of the library: in the version of our header, or in the newest version
// of an older library. Null if the library lacks functions that are required.
const OrtApi* ApiOrNull();
// Returns the table where it is known to exist, that is after Environment::Create.
inline const OrtApi& Api() {
  static const OrtApi& api = *ApiOrNull();
  return api;
}

// Takes ownership of a status and converts it to "onnx runtime error <code>: <text>", internal, as
// Triton words it.
backend::Error FromOrt(OrtStatus* status);

// Releases objects of ONNX Runtime's C API.
struct Deleter {
  void operator()(OrtEnv* p) const { Api().ReleaseEnv(p); }
  void operator()(OrtSession* p) const { Api().ReleaseSession(p); }
  void operator()(OrtSessionOptions* p) const { Api().ReleaseSessionOptions(p); }
  void operator()(OrtRunOptions* p) const { Api().ReleaseRunOptions(p); }
  void operator()(OrtThreadingOptions* p) const { Api().ReleaseThreadingOptions(p); }
  void operator()(OrtMemoryInfo* p) const { Api().ReleaseMemoryInfo(p); }
  void operator()(OrtValue* p) const { Api().ReleaseValue(p); }
  void operator()(OrtCustomOpDomain* p) const { Api().ReleaseCustomOpDomain(p); }
  void operator()(OrtTypeInfo* p) const { Api().ReleaseTypeInfo(p); }
  void operator()(OrtTensorTypeAndShapeInfo* p) const { Api().ReleaseTensorTypeAndShapeInfo(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

}  // namespace nereid::onnxruntime

// Returns from the enclosing function if a call of ONNX Runtime fails.
#define NEREID_ORT_TRY(expression)                                     \
  do {                                                                 \
    if (OrtStatus* ort_status = (expression); ort_status != nullptr) { \
      return ::nereid::onnxruntime::FromOrt(ort_status);               \
    }                                                                  \
  } while (false)
