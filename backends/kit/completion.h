// SPDX-License-Identifier: Apache-2.0
// For backends that complete configurations: what the user wrote, and telling why the backend
// decided as it did. In a server that does not have these functions, nothing was written and nobody
// is told.
#pragma once

#include <string>

#include "backend_kit/error.h"
#include "nereid/backend_completion.h"

namespace nereid::backend {

// Whether the user's configuration gives max_batch_size, be it 0.
inline Result<bool> GivesMaxBatchSize(TRITONBACKEND_Model* model) {
  bool gives = false;
  if (NEREIDBACKEND_ModelGivesMaxBatchSize != nullptr) {
    NEREID_KIT_TRY(NEREIDBACKEND_ModelGivesMaxBatchSize(model, &gives));
  }
  return gives;
}

// Has the server keep a JSON object with the model version that says why the backend decided about
// `subject` as it did.
inline Error Explain(TRITONBACKEND_Model* model, const char* subject, const std::string& json) {
  if (NEREIDBACKEND_ModelExplain == nullptr) {
    return {};
  }
  return Error(NEREIDBACKEND_ModelExplain(model, subject, json.c_str()));
}

}  // namespace nereid::backend
