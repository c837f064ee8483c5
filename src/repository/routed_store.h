// SPDX-License-Identifier: Apache-2.0
// Combines several stores: the beginning of a path determines its store.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "repository/local_store.h"

namespace nereid::repository {

// A kind of store other than local folders.
struct StoreKind {
  std::string prefix;  // of its paths, such as "s3://"
  std::function<std::unique_ptr<Store>()> make;
};

// The store of local folders and the given kinds. Thread-safe.
class RoutedStore final : public Store {
 public:
  // A store is made when its first path is used.
  explicit RoutedStore(std::vector<StoreKind> kinds = {});

  // Whether the path lies in a local folder, which costs nothing to look at.
  bool IsLocal(const std::string& path) const { return FindOther(path) == nullptr; }

  base::Result<std::vector<Entry>> List(const std::string& folder) const override;
  bool Exists(const std::string& path) const override;
  bool IsFolder(const std::string& path) const override;
  base::Result<std::string> Read(const std::string& path, size_t max_bytes) const override;
  base::Result<int64_t> ModifiedNs(const std::string& path) const override;
  base::Status CheckRepository(const std::string& repository) const override;
  void Refresh(const std::string& folder) const override;
  base::Result<LocalFolder> Localize(const std::string& folder) const override;
  base::Result<std::optional<SmallFile>> ReadNow(const std::string& path, size_t max_bytes,
                                                 const std::stop_token& stop) const override;
  base::Result<bool> Replace(const std::string& path, const std::string& text,
                             const std::optional<SmallFile>& before) const override;

 private:
  // A kind of store and, once a path of its kind was used, the store itself.
  struct Route {
    StoreKind kind;
    std::once_flag made;
    std::unique_ptr<Store> store;
  };

  // Returns null if the path is local.
  const Store* FindOther(const std::string& path) const;
  const Store& For(const std::string& path) const;

  const LocalStore local_;
  std::vector<std::unique_ptr<Route>> routes_;
};

}  // namespace nereid::repository
