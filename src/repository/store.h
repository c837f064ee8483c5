// SPDX-License-Identifier: Apache-2.0
// Where model repositories lie: folders on this machine, or a bucket of some object store. One
// implementation per kind of place; scanning knows only this interface.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Paths are whole paths in the store's own form, joined with '/'. Implementations are thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // What lies directly in a folder, sorted by name. Entries that vanish or cannot be examined (a
  // link to nowhere) are left out.
  virtual base::Result<std::vector<Entry>> List(const std::string& folder) const = 0;
  // Whether there is a file or folder of this path. Unreachable counts as not there.
  virtual bool Exists(const std::string& path) const = 0;
  // False also when there is nothing of this path.
  virtual bool IsFolder(const std::string& path) const = 0;
  // A whole file. An error when it has more than `max_bytes`.
  virtual base::Result<std::string> Read(const std::string& path, size_t max_bytes) const = 0;
  // When this one file or folder was last changed, in nanoseconds of the store's clock.
  virtual base::Result<int64_t> ModifiedNs(const std::string& path) const = 0;

  // Whether a repository can be there: an error that says why not.
  virtual base::Status CheckRepository(const std::string& repository) const;
  // Asks where `folder` lies what is in it now. A store that keeps what it knows, because asking is
  // slow, otherwise answers from that. To be called before a scan looks at the folder; an error is
  // what List answers then.
  virtual void Refresh(const std::string& folder) const;
  // Brings the files of a folder to this machine; for one that is there already, nothing happens.
  virtual base::Result<LocalFolder> Localize(const std::string& folder) const;
};

}  // namespace nereid::repository
