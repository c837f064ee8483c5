// SPDX-License-Identifier: Apache-2.0
// Repositories in local folders.
#pragma once

#include "repository/store.h"

namespace nereid::repository {

// A store of local folders. Symbolic links are followed. Read() accepts regular files only, so a
// pipe or a device in a repository cannot block the server. Replace() compares texts and locks the
// file, so of several writers, in this process or others, each sees what the last one wrote.
// Immutable and thread-safe.
class LocalStore final : public Store {
 public:
  base::Result<std::vector<Entry>> List(const std::string& folder) const override;
  bool Exists(const std::string& path) const override;
  bool IsFolder(const std::string& path) const override;
  base::Result<std::string> Read(const std::string& path, size_t max_bytes) const override;
  base::Result<int64_t> ModifiedNs(const std::string& path) const override;
  base::Result<std::optional<SmallFile>> ReadNow(const std::string& path, size_t max_bytes,
                                                 const std::stop_token& stop) const override;
  base::Result<bool> Replace(const std::string& path, const std::string& text,
                             const std::optional<SmallFile>& before) const override;
};

}  // namespace nereid::repository
