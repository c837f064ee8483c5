// SPDX-License-Identifier: Apache-2.0
#include "repository/routed_store.h"

namespace nereid::repository {

RoutedStore::RoutedStore(std::vector<StoreKind> kinds) {
  for (StoreKind& kind : kinds) {
    routes_.push_back(std::make_unique<Route>());
    routes_.back()->kind = std::move(kind);
  }
}

const Store* RoutedStore::FindOther(const std::string& path) const {
  for (const auto& route : routes_) {
    if (!path.starts_with(route->kind.prefix)) continue;
    std::call_once(route->made, [&route] { route->store = route->kind.make(); });
    return route->store.get();
  }
  return nullptr;
}

const Store& RoutedStore::For(const std::string& path) const {
  const Store* const other = FindOther(path);
  return other != nullptr ? *other : local_;
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
  if (const Store* const other = FindOther(repository)) return other->CheckRepository(repository);
  // Triton knows these schemes, but for the last, and reports this error when it was built without
  // them.
  for (const char* scheme : {"s3://", "gs://", "as://", "azure://"}) {
    if (repository.starts_with(scheme)) {
      return base::InternalError(std::string(scheme) + " file-system not supported.");
    }
  }
  return local_.CheckRepository(repository);
}

void RoutedStore::Refresh(const std::string& folder) const { For(folder).Refresh(folder); }

base::Result<LocalFolder> RoutedStore::Localize(const std::string& folder) const {
  return For(folder).Localize(folder);
}

base::Result<std::optional<SmallFile>> RoutedStore::ReadNow(const std::string& path,
                                                            size_t max_bytes,
                                                            const std::stop_token& stop) const {
  return For(path).ReadNow(path, max_bytes, stop);
}

base::Result<bool> RoutedStore::Replace(const std::string& path, const std::string& text,
                                        const std::optional<SmallFile>& before) const {
  return For(path).Replace(path, text, before);
}

}  // namespace nereid::repository
