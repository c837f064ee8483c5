// SPDX-License-Identifier: Apache-2.0
// Logs, from --log-verbose=1 on, which inference request failed and why. Both protocols use it, so
// that an operator can search for one text.
#pragma once

#include <string_view>

#include "base/log.h"
#include "base/status.h"

namespace nereid::common {

inline void LogFailedInference(std::string_view id, const base::Status& error) {
  NEREID_VLOG(1, "[request id: {}] Infer failed: {}", id.empty() ? "<id_unknown>" : id,
              error.message());
}

}  // namespace nereid::common
