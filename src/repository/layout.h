// SPDX-License-Identifier: Apache-2.0
// The repositories, and the models in them whose name differs from their folder's. Both may change
// while the server runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace nereid::repository {

// Names of models, and the subfolder of each in a repository.
using NameMapping = std::map<std::string, std::string>;

// One state of the repositories. Immutable.
struct Layout {
  // The place of a model whose name differs from its folder's.
  struct Mapped {
    std::string repository;
    std::string folder;  // the whole path
  };

  std::vector<std::string> repositories;  // without duplicates
  std::map<std::string, Mapped> mapped;   // by the name of the model

  bool IsMapped(const std::string& folder) const { return !NameOf(folder).empty(); }
  // Returns the name of the model in `folder`; empty if it is the folder's.
  std::string NameOf(const std::string& folder) const;
};

// The current layout. Thread-safe. Error texts follow Triton's core/src/model_repository_manager.
class LayoutHolder {
 public:
  explicit LayoutHolder(const std::vector<std::string>& repositories);

  std::shared_ptr<const Layout> Get() const;
  // Returns AlreadyExists if the repository or the name of a mapped model is known.
  base::Status Register(const std::string& repository, const NameMapping& names);
  // Returns InvalidArgument if there is no such repository.
  base::Status Unregister(const std::string& repository);

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<const Layout> layout_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::repository
