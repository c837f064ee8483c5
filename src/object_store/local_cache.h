// SPDX-License-Identifier: Apache-2.0
// Copies of objects on this machine. The cache contains:
//
//   files/<hash of place, ETag and size>                    an object, whole and checked
//   models/<hash of folder>/<hash of contents>/<name>/...   a folder, as links to those files
//
// Neither is ever changed: another state of an object or folder has another name, and both get
// their name in one atomic rename. Several servers can share a cache, and a restarted server finds
// what it downloaded before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "object_store/bucket.h"
#include "object_store/download.h"
#include "object_store/object.h"
#include "repository/model_files.h"

namespace nereid::object_store {

// A file of a folder: an object and its path.
struct FolderFile {
  std::string path;  // relative to the folder; no component is empty, "." or ".."
  Object object;
};

// The state of a folder in the object store: its location and every object in it.
struct FolderContents {
  std::string origin;                // the canonical location of the folder
  std::string name;                  // the last component of the folder's path
  std::vector<FolderFile> files;     // sorted by path
  std::vector<std::string> folders;  // empty folders
};

// The cache's directory, which several caches may share, and the settings of its downloads.
struct LocalCacheOptions {
  std::string directory;
  DownloadOptions download;
};

// The cache. Thread-safe.
class LocalCache {
 public:
  explicit LocalCache(LocalCacheOptions options) : options_(std::move(options)) {}

  // The default place of the cache of one kind of store: in `parent` or, if that is empty, in the
  // folder for temporary files.
  static std::string DefaultDirectory(const std::string& parent, std::string_view kind);

  // Returns a folder with these contents and downloads what is missing. The folder stays while the
  // result's `files` exists, and then until another state replaces it.
  base::Result<repository::LocalFolder> Open(Bucket& bucket, const FolderContents& contents);
  // Returns the path of a copy of one object, which stays for some minutes at least. `origin` is
  // the object's location.
  base::Result<std::string> OpenFile(Bucket& bucket, const std::string& origin,
                                     const Object& object);

 private:
  base::Status Prepare() const;
  std::string FilePath(const std::string& origin, const Object& object) const;
  base::Status Fill(Bucket& bucket, const FolderContents& contents,
                    const std::string& folder) const;

  const LocalCacheOptions options_;
};

}  // namespace nereid::object_store
