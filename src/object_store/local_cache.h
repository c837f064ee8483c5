// SPDX-License-Identifier: Apache-2.0
// Copies of objects on this machine. Two kinds of thing lie in the cache:
//
//   files/<hash of place, ETag and size>                    an object, whole and checked
//   models/<hash of folder>/<hash of contents>/<name>/...   a folder, as links to those files
//
// Neither is ever changed: another state of an object or folder has another name, and everything
// comes to its name in one move. Several servers can share a cache, and a server finds in it what
// it fetched before it was started anew.
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

// A file of a folder: an object and where it belongs.
struct FolderFile {
  std::string path;  // relative to the folder; no component is empty, "." or ".."
  Object object;
};

// The state of a folder in the object store: where it lies, and every object in it.
struct FolderContents {
  std::string origin;                // of the folder, in one form for all ways to write it
  std::string name;                  // its last component
  std::vector<FolderFile> files;     // sorted by path
  std::vector<std::string> folders;  // with nothing in them
};

// Where the cache lies on this machine, and how it is filled. Several caches may share a directory.
struct LocalCacheOptions {
  std::string directory;
  DownloadOptions download;
};

// Thread-safe.
class LocalCache {
 public:
  explicit LocalCache(LocalCacheOptions options) : options_(std::move(options)) {}

  // Where the cache of one kind of store lies by default: in `parent` or, if that is empty, in the
  // folder for temporary files.
  static std::string DefaultDirectory(const std::string& parent, std::string_view kind);

  // A folder with these contents. Fetches what is not there. The folder stays as long as the
  // result's `files`, and then until another state of it takes its place.
  base::Result<repository::LocalFolder> Open(Bucket& bucket, const FolderContents& contents);
  // The path of a copy of one object, which stays for some minutes at least. `origin` is the
  // object's place.
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
