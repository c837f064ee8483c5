// SPDX-License-Identifier: Apache-2.0
#include "repository/changes.h"

namespace nereid::repository {
namespace {

bool IsDuplicate(const ModelSource& source) {
  return !source.config.ok() && source.config.status().message() == kDuplicateReason;
}

}  // namespace

Changes Compare(const KnownModels& before, const ScanResult& now) {
  Changes changes;
  changes.unmodified = now.unmodified;
  for (const auto& [id, source] : now.models) {
    if (IsDuplicate(source)) {
      if (before.contains(id)) changes.removed.insert(id);
    } else if (!source.config.ok()) {
      changes.refused.insert(id);
    } else {
      (before.contains(id) ? changes.modified : changes.added).insert(id);
    }
  }
  for (const auto& [id, known] : before) {
    if (now.models.contains(id) || now.unmodified.contains(id)) continue;
    const bool unknown = now.unreadable_repositories.contains(known.repository);
    (unknown ? changes.unmodified : changes.removed).insert(id);
  }
  return changes;
}

}  // namespace nereid::repository
