// SPDX-License-Identifier: Apache-2.0
// The owner of a model's files, which is told how the load proceeds: agents that processed the
// files, or a cache that holds a copy of them.
#pragma once

#include <memory>
#include <string>

namespace nereid::repository {

// Keeps the files of one load in place. All versions of the load share it. Each load ends in
// exactly one of OnLoaded and OnLoadFailed. The object is destroyed once nothing can load from the
// files and nothing that was loaded is in use. Calls for one load do not overlap.
class ModelFiles {
 public:
  virtual ~ModelFiles() = default;
  // Called when every version to be served is ready.
  virtual void OnLoaded() {}
  virtual void OnLoadFailed() {}
  // Called when the versions accept no new requests; only after OnLoaded. A second call does
  // nothing.
  virtual void OnUnloading() {}
};

// A local folder, which stays unchanged as long as `files` exists.
struct LocalFolder {
  std::string path;
  std::shared_ptr<ModelFiles> files;  // null: the folder is never removed
};

}  // namespace nereid::repository
