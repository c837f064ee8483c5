// SPDX-License-Identifier: Apache-2.0
// Identifies one version of one model.
#pragma once

#include <compare>
#include <cstdint>

#include "repository/model_id.h"

namespace nereid::engine {

// A model and the number of its version. A value type, ordered by model and then by version.
struct VersionKey {
  repository::ModelId id;
  int64_t version = 0;
  auto operator<=>(const VersionKey&) const = default;
};

}  // namespace nereid::engine
