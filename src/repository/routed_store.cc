// SPDX-License-Identifier: Apache-2.0
#include "repository/routed_store.h"

namespace nereid::repository {

void RoutedStore::Add(std::string prefix, MakeStore make) {
  routes_.push_back(std::make_unique<Route>());
  routes_.back()->prefix = std::move(prefix);
  routes_.back()->make = std::move(make);
}

const Store& RoutedStore::For(const std::string& path) const {
  for (const auto& route : routes_) {
    if (!path.starts_with(route->prefix)) continue;
    std::call_once(route->made, [&route] { route->store = route->make(); });
    return *route->store;
  }
  return local_;
}

base::Result<std::vector<Entry>> RoutedStore::List(const std::string& folder) const {
  return For(folder).List(folder);
}

bool RoutedStore::Exists(const std::string& path) const { return For(path).Exists(path); }

bool RoutedStore::IsFolder(const std::string& path) const { return For(path).IsFolder(path); }

base::Result<std::string> RoutedStore::Read(const std::string& path, size_t max_bytes) const {
  return For(path).Read(path, max_bytes);
}

base::Result<int64_t> RoutedStore::ModifiedNs(const std::string& path) const {
  return For(path).ModifiedNs(path);
}

base::Status RoutedStore::CheckRepository(const std::string& repository) const {
  // Kinds of place that Triton knows and we do not: it says so itself where it was built without
  // them.
  for (const char* scheme : {"gs://", "as://"}) {
    if (repository.starts_with(scheme)) {
      return base::InternalError(std::string(scheme) + " file-system not supported.");
    }
  }
  return For(repository).CheckRepository(repository);
}

void RoutedStore::Refresh(const std::string& folder) const { For(folder).Refresh(folder); }

base::Result<LocalFolder> RoutedStore::Localize(const std::string& folder) const {
  return For(folder).Localize(folder);
}

}  // namespace nereid::repository
