// SPDX-License-Identifier: Apache-2.0
#include "repository/changes.h"

namespace nereid::repository {
namespace {

bool IsDuplicate(const ModelSource& source) {
  return !source.config.ok() && source.config.status().message() == kDuplicateReason;
}

}  // namespace

Changes Compare(const std::map<std::string, ModelSource>& before, const ScanResult& now) {
  Changes changes;
  for (const auto& [name, source] : now.models) {
    const auto known = before.find(name);
    if (IsDuplicate(source)) {
      changes.removed.insert(name);
    } else if (known != before.end() && known->second.repository == source.repository &&
               !known->second.timestamp.IsOlderThan(source.timestamp)) {
      changes.unmodified.insert(name);
    } else if (!source.config.ok()) {
      changes.refused.insert(name);
    } else if (known == before.end()) {
      changes.added.insert(name);
    } else {
      changes.modified.insert(name);
    }
  }
  for (const auto& [name, source] : before) {
    if (now.models.count(name) != 0) continue;
    const bool unknown = now.unreadable_repositories.count(source.repository) != 0;
    (unknown ? changes.unmodified : changes.removed).insert(name);
  }
  return changes;
}

}  // namespace nereid::repository
