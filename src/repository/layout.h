// SPDX-License-Identifier: Apache-2.0
// Which repositories there are, and which models in them go by another name than their folder's. It
// may change while the server runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace nereid::repository {

// Names of models, and below which folder of a repository each lies.
using NameMapping = std::map<std::string, std::string>;

// Immutable.
struct Layout {
  // Where a model lies that goes by another name than its folder's.
  struct Mapped {
    std::string repository;
    std::string folder;  // the whole path
  };

  std::vector<std::string> repositories;  // each once
  std::map<std::string, Mapped> mapped;   // by the name of the model

  bool IsMapped(const std::string& folder) const { return !NameOf(folder).empty(); }
  // The name that the model in `folder` goes by; empty where that is the folder's.
  std::string NameOf(const std::string& folder) const;
};

// Thread-safe. Texts of errors: core/src/model_repository_manager of Triton.
class LayoutHolder {
 public:
  explicit LayoutHolder(const std::vector<std::string>& repositories);

  std::shared_ptr<const Layout> Get() const;
  // AlreadyExists where the repository or the name of a mapped model is known.
  base::Status Register(const std::string& repository, const NameMapping& names);
  // InvalidArgument where there is no such repository.
  base::Status Unregister(const std::string& repository);

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<const Layout> layout_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::repository
