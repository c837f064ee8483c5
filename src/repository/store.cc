// SPDX-License-Identifier: Apache-2.0
#include "repository/store.h"

namespace nereid::repository {

base::Status Store::CheckRepository(const std::string& repository) const {
  if (!Exists(repository)) {
    return base::InternalError("failed to stat file " + repository +
                               ": there is no such model repository");
  }
  if (!IsFolder(repository)) {
    return base::InvalidArgumentError("repository path is not a valid directory: " + repository);
  }
  return base::OkStatus();
}

void Store::Refresh(const std::string&) const {}

base::Result<LocalFolder> Store::Localize(const std::string& folder) const {
  return LocalFolder{folder, nullptr};
}

base::Result<std::optional<SmallFile>> Store::ReadNow(const std::string&, size_t,
                                                      const std::stop_token&) const {
  return std::optional<SmallFile>();
}

base::Result<bool> Store::Replace(const std::string& path, const std::string&,
                                  const std::optional<SmallFile>&) const {
  return base::UnsupportedError("nothing can be written here: " + path);
}

}  // namespace nereid::repository
