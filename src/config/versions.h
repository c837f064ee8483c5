// SPDX-License-Identifier: Apache-2.0
// Which versions of a model to serve.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/model_config.h"

namespace nereid::config {

// The version that a folder of this name holds. Nothing for folders that hold no version; `warning`
// then says why, and is empty for the folders that have another purpose (warmup, initial_state,
// configs).
struct VersionName {
  std::optional<int64_t> version;
  std::string warning;
};
VersionName ParseVersionName(std::string_view folder);

// The versions of `available` that the policy asks for. No policy means the latest one. Versions
// that `specific` names but which are not there are reported in `missing`.
struct VersionSelection {
  std::set<int64_t> versions;
  std::vector<int64_t> missing;
};
VersionSelection VersionsToLoad(const std::optional<VersionPolicy>& policy,
                                const std::set<int64_t>& available);

}  // namespace nereid::config
