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

// A kind of store besides folders of this machine.
struct StoreKind {
  std::string prefix;  // of the paths that belong to it, such as "s3://"
  std::function<std::unique_ptr<Store>()> make;
};

// Folders of this machine, and what else is given. Thread-safe.
class RoutedStore final : public Store {
 public:
  // A store is made when the first path is met that belongs to it.
  explicit RoutedStore(std::vector<StoreKind> kinds = {});

  base::Result<std::vector<Entry>> List(const std::string& folder) const override;
  bool Exists(const std::string& path) const override;
  bool IsFolder(const std::string& path) const override;
  base::Result<std::string> Read(const std::string& path, size_t max_bytes) const override;
  base::Result<int64_t> ModifiedNs(const std::string& path) const override;
  base::Status CheckRepository(const std::string& repository) const override;
  void Refresh(const std::string& folder) const override;
  base::Result<LocalFolder> Localize(const std::string& folder) const override;

 private:
  // A kind of store and, once a path of its kind was met, the store itself.
  struct Route {
    StoreKind kind;
    std::once_flag made;
    std::unique_ptr<Store> store;
  };

  // Null where the path is one of this machine.
  const Store* FindOther(const std::string& path) const;
  const Store& For(const std::string& path) const;

  const LocalStore local_;
  std::vector<std::unique_ptr<Route>> routes_;
};

}  // namespace nereid::repository
