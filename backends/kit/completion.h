// SPDX-License-Identifier: Apache-2.0
// For backends that complete configurations: what the user wrote, and a place to explain the
// backend's decision. In a server without the functions of nereid/backend_completion.h, the first
// says that the user wrote nothing, and the second has no effect.
#pragma once

#include <string>

#include "backend_kit/error.h"
#include "nereid/backend_completion.h"

namespace nereid::backend {

// Whether the user's configuration gives max_batch_size, even as 0.
inline Result<bool> GivesMaxBatchSize(TRITONBACKEND_Model* model) {
  bool gives = false;
  if (NEREIDBACKEND_ModelGivesMaxBatchSize != nullptr) {
    NEREID_KIT_TRY(NEREIDBACKEND_ModelGivesMaxBatchSize(model, &gives));
  }
  return gives;
}

// Lets the server keep a JSON object with the model version that says why the backend decided as it
// did about `subject`.
inline Error Explain(TRITONBACKEND_Model* model, const char* subject, const std::string& json) {
  if (NEREIDBACKEND_ModelExplain == nullptr) {
    return {};
  }
  return Error(NEREIDBACKEND_ModelExplain(model, subject, json.c_str()));
}

}  // namespace nereid::backend
