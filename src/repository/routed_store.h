// SPDX-License-Identifier: Apache-2.0
// Several stores as one: which one a path belongs to is seen from its beginning.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "repository/local_store.h"

namespace nereid::repository {

// Folders of this machine, and what else is added. Thread-safe once everything is added, as the
// stores are.
class RoutedStore final : public Store {
 public:
  using MakeStore = std::function<std::unique_ptr<Store>()>;

  // Paths that begin with `prefix`, such as "s3://", belong to the store that `make` makes when the
  // first of them is met.
  void Add(std::string prefix, MakeStore make);

  base::Result<std::vector<Entry>> List(const std::string& folder) const override;
  bool Exists(const std::string& path) const override;
  bool IsFolder(const std::string& path) const override;
  base::Result<std::string> Read(const std::string& path, size_t max_bytes) const override;
  base::Result<int64_t> ModifiedNs(const std::string& path) const override;
  base::Status CheckRepository(const std::string& repository) const override;
  void Refresh(const std::string& folder) const override;
  base::Result<LocalFolder> Localize(const std::string& folder) const override;

 private:
  struct Route {
    std::string prefix;
    MakeStore make;
    std::once_flag made;
    std::unique_ptr<Store> store;
  };

  const Store& For(const std::string& path) const;

  const LocalStore local_;
  std::vector<std::unique_ptr<Route>> routes_;
};

}  // namespace nereid::repository
