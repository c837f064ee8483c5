// SPDX-License-Identifier: Apache-2.0
// What keeps the files of a model where they are and hears how its load goes: agents that were
// asked about the files, a cache that holds a copy of them.
#pragma once

#include <memory>
#include <string>

namespace nereid::repository {

// Shared by all versions of one load of a model. Each load ends in exactly one of OnLoaded and
// OnLoadFailed; once nobody can load from the files or use what was loaded, it is destroyed. Calls
// for one load do not overlap.
class ModelFiles {
 public:
  virtual ~ModelFiles() = default;
  // Every version that was to be served is ready.
  virtual void OnLoaded() {}
  virtual void OnLoadFailed() {}
  // The versions take no new requests; after OnLoaded only. A second call does nothing.
  virtual void OnUnloading() {}
};

// A folder of this machine, which stays as it is as long as `files` exists.
struct LocalFolder {
  std::string path;
  std::shared_ptr<ModelFiles> files;  // null: the folder is nobody's to take away
};

}  // namespace nereid::repository
