// SPDX-License-Identifier: Apache-2.0
#include "config/versions.h"

#include <charconv>

namespace nereid::config {

VersionName ParseVersionName(std::string_view folder) {
  if (folder.empty() || folder == "warmup" || folder == "initial_state" || folder == "configs")
    return {};
  const auto ignored = [&](std::string_view why) {
    return VersionName{.warning = "ignore version directory '" + std::string(folder) + "' which " +
                                  std::string(why)};
  };
  if (folder.size() > 1 && folder.front() == '0') {
    return ignored("contains leading zeros in its directory name");
  }
  int64_t version = 0;
  const char* const end = folder.data() + folder.size();
  const auto [stop, error] = std::from_chars(folder.data(), end, version);
  // Signs are refused, because -1 means "the latest" everywhere else.
  if (folder.front() == '-' || error != std::errc() || stop != end) {
    return ignored("fails to convert to integral number");
  }
  return {.version = version};
}

VersionSelection VersionsToLoad(const std::optional<VersionPolicy>& policy,
                                const std::set<int64_t>& available) {
  VersionSelection selection;
  VersionPolicy chosen = policy.value_or(VersionPolicy{VersionPolicy::Latest{1}});
  if (const auto* specific = std::get_if<VersionPolicy::Specific>(&chosen.choice)) {
    for (const int64_t version : specific->versions) {
      if (available.count(version) != 0) {
        selection.versions.insert(version);
      } else {
        selection.missing.push_back(version);
      }
    }
  } else if (const auto* latest = std::get_if<VersionPolicy::Latest>(&chosen.choice)) {
    for (auto it = available.rbegin(); it != available.rend(); ++it) {
      if (selection.versions.size() >= latest->num_versions) break;
      selection.versions.insert(*it);
    }
  } else {
    selection.versions = available;
  }
  return selection;
}

}  // namespace nereid::config
