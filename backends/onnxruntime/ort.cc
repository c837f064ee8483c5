// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/ort.h"

#include "onnxruntime_backend/library.h"

namespace nereid::onnxruntime {

const OrtApi* ApiOrNull() {
  // Version 18 introduced AddExternalInitializersFromFilesInMemory, the newest function used here.
  // The table is append-only, so an older one is a prefix of the one in our header.
  constexpr uint32_t kOldest = 18;
  static const OrtApi* const api = [] {
    const OrtApi* found = nullptr;
    for (uint32_t version = ORT_API_VERSION; version >= kOldest && found == nullptr; --version) {
      found = ApiBase().GetApi(version);
    }
    return found;
  }();
  return api;
}

backend::Error FromOrt(OrtStatus* status) {
  if (status == nullptr) {
    return {};
  }
  backend::Error error = backend::Error::Internal(
      backend::StrCat("onnx runtime error ", static_cast<int>(Api().GetErrorCode(status)), ": ",
                      Api().GetErrorMessage(status)));
  Api().ReleaseStatus(status);
  return error;
}

}  // namespace nereid::onnxruntime
