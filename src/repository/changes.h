// SPDX-License-Identifier: Apache-2.0
// What a new scan asks to be done, compared with what was scanned before. Polling, explicit loading
// and start-up all reduce to this: a desired state, a current one, and the difference.
#pragma once

#include <map>
#include <set>
#include <string>

#include "repository/scanner.h"

namespace nereid::repository {

struct Changes {
  std::set<std::string> added;       // new, and fit to be loaded
  std::set<std::string> modified;    // something in the folder changed, and it is fit to be loaded
  std::set<std::string> unmodified;  // nothing to do
  std::set<std::string> removed;     // gone, or now in several repositories: unload
  std::set<std::string> refused;     // not fit to be loaded; one that was loaded before stays as it is
};

// `before` holds what was last loaded or tried, by name. Models of a repository that could not be
// listed this time count as unmodified.
Changes Compare(const std::map<std::string, ModelSource>& before, const ScanResult& now);

}  // namespace nereid::repository
