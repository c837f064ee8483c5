// SPDX-License-Identifier: Apache-2.0
// For backends that complete configurations: reads what the user wrote, and records explanations of
// the backend's decisions. On a server without the functions of nereid/backend_completion.h,
// nothing counts as written, and explanations have no effect.
#pragma once

#include <string>

#include "backend_kit/error.h"
#include "nereid/backend_completion.h"

namespace nereid::backend {

// Whether the user's configuration sets max_batch_size, even as 0.
inline Result<bool> GivesMaxBatchSize(TRITONBACKEND_Model* model) {
  bool gives = false;
  if (NEREIDBACKEND_ModelGivesMaxBatchSize != nullptr) {
    NEREID_KIT_TRY(NEREIDBACKEND_ModelGivesMaxBatchSize(model, &gives));
  }
  return gives;
}

// Stores a JSON object with the model version that explains the backend's decision about `subject`.
inline Error Explain(TRITONBACKEND_Model* model, const char* subject, const std::string& json) {
  if (NEREIDBACKEND_ModelExplain == nullptr) {
    return {};
  }
  return Error(NEREIDBACKEND_ModelExplain(model, subject, json.c_str()));
}

}  // namespace nereid::backend
