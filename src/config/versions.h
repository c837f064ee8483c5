// SPDX-License-Identifier: Apache-2.0
// The selection of the versions of a model to serve.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/model_config.h"

namespace nereid::config {

// The version in a folder of this name, or nothing. If nothing, `warning` says why, and is empty
// for folders with another purpose (warmup, initial_state, configs).
struct VersionName {
  std::optional<int64_t> version;
  std::string warning;
};
VersionName ParseVersionName(std::string_view folder);

// The versions of `available` that the policy selects; without a policy, the latest one. Versions
// that `specific` names but that are not available are in `missing`.
struct VersionSelection {
  std::set<int64_t> versions;
  std::vector<int64_t> missing;
};
VersionSelection VersionsToLoad(const std::optional<VersionPolicy>& policy,
                                const std::set<int64_t>& available);

}  // namespace nereid::config
