// SPDX-License-Identifier: Apache-2.0
// The storage of model repositories: local folders, or a bucket of an object store. One
// implementation per kind; scanning knows only this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "repository/model_files.h"

namespace nereid::repository {

// A file or a folder in a folder, by its name alone.
struct Entry {
  std::string name;
  bool is_folder = false;
  bool operator==(const Entry&) const = default;
};

// A small file at one moment. A value type.
struct SmallFile {
  std::string text;
  std::string mark;  // of a store that marks contents: differs when the file was replaced
  bool operator==(const SmallFile&) const = default;
};

// A store of files and folders. Paths are absolute in the store's own form, joined with '/'.
// Implementations are thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // Returns the direct entries of a folder, sorted by name. Entries that vanish or lead nowhere (a
  // dangling link) are left out.
  virtual base::Result<std::vector<Entry>> List(const std::string& folder) const = 0;
  // Whether there is a file or folder of this path. One that cannot be seen for trouble with the
  // storage may count as present, so that reading it says why.
  virtual bool Exists(const std::string& path) const = 0;
  // Whether the path is a folder; false also if it does not exist.
  virtual bool IsFolder(const std::string& path) const = 0;
  // Reads a whole file. Fails if it has more than `max_bytes`.
  virtual base::Result<std::string> Read(const std::string& path, size_t max_bytes) const = 0;
  // Returns when this file or folder was last changed, in nanoseconds of the store's clock.
  virtual base::Result<int64_t> ModifiedNs(const std::string& path) const = 0;

  // Checks that a repository can be at this path; the error says why not.
  virtual base::Status CheckRepository(const std::string& repository) const;
  // Updates the knowledge of `folder` in stores that keep listings because requests are slow. A
  // scan calls this before it lists the folder; List then reports any error.
  virtual void Refresh(const std::string& folder) const;
  // Makes a local copy of a folder; a folder that is local already is returned as it is.
  virtual base::Result<LocalFolder> Localize(const std::string& folder) const;

  // Reads a file as it is at this moment, not as the last listing or a cache knew it; nothing if
  // there is none. One request, which is not repeated; `stop` ends it early. Fails if the file has
  // more than `max_bytes`. A store without such files has none.
  virtual base::Result<std::optional<SmallFile>> ReadNow(const std::string& path, size_t max_bytes,
                                                         const std::stop_token& stop) const;
  // Writes a file as a whole: readers see the old text or the new one. Returns false without
  // writing anything if the file is not what `before` says any more (nothing: there is none), as
  // far as the store can tell.
  virtual base::Result<bool> Replace(const std::string& path, const std::string& text,
                                     const std::optional<SmallFile>& before) const;
};

}  // namespace nereid::repository
