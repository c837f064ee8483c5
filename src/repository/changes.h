// SPDX-License-Identifier: Apache-2.0
// The difference between a new scan and the previous one. Polling, explicit loading and start-up
// all reduce to this: a desired state, a current one, and the difference.
#pragma once

#include <set>

#include "repository/model_source.h"

namespace nereid::repository {

// What happened to each model between two scans. No model is in more than one of the sets.
struct Changes {
  std::set<ModelId> added;       // new and loadable
  std::set<ModelId> modified;    // loadable, and something in the folder changed
  std::set<ModelId> unmodified;  // nothing to do
  std::set<ModelId> removed;     // gone, or now in several repositories: unload
  std::set<ModelId> refused;     // not loadable; a previously loaded one stays as it is
};

// `before` holds the models last loaded or tried, as given to ScanAll. Models of a repository that
// could not be listed this time count as unmodified.
Changes Compare(const KnownModels& before, const ScanResult& now);

}  // namespace nereid::repository
