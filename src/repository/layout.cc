// SPDX-License-Identifier: Apache-2.0
#include "repository/layout.h"

#include <algorithm>

#include <fmt/core.h>

#include "config/paths.h"

namespace nereid::repository {

std::string Layout::NameOf(const std::string& folder) const {
  for (const auto& [name, place] : mapped) {
    if (place.folder == folder) return name;
  }
  return {};
}

LayoutHolder::LayoutHolder(const std::vector<std::string>& repositories) {
  auto layout = std::make_shared<Layout>();
  for (const std::string& repository : repositories) {
    // A path that is given twice is one repository, not two with all models in common.
    if (std::ranges::find(layout->repositories, repository) == layout->repositories.end()) {
      layout->repositories.push_back(repository);
    }
  }
  base::MutexLock lock(mutex_);
  layout_ = std::move(layout);
}

std::shared_ptr<const Layout> LayoutHolder::Get() const {
  base::MutexLock lock(mutex_);
  return layout_;
}

base::Status LayoutHolder::Register(const std::string& repository, const NameMapping& names) {
  base::MutexLock lock(mutex_);
  if (std::ranges::find(layout_->repositories, repository) != layout_->repositories.end()) {
    return base::AlreadyExistsError(
        fmt::format("model repository '{}' has already been registered", repository));
  }
  auto next = std::make_shared<Layout>(*layout_);
  next->repositories.push_back(repository);
  for (const auto& [name, subfolder] : names) {
    Layout::Mapped place{.repository = repository,
                         .folder = config::JoinPath(repository, subfolder)};
    if (!next->mapped.try_emplace(name, std::move(place)).second) {
      return base::AlreadyExistsError(
          fmt::format("failed to register '{0}', there is a conflicting mapping for '{0}'", name));
    }
  }
  layout_ = std::move(next);
  return base::OkStatus();
}

base::Status LayoutHolder::Unregister(const std::string& repository) {
  base::MutexLock lock(mutex_);
  auto next = std::make_shared<Layout>(*layout_);
  if (std::erase(next->repositories, repository) == 0) {
    return base::InvalidArgumentError(
        fmt::format("failed to unregister '{}', repository not found", repository));
  }
  std::erase_if(next->mapped,
                [&](const auto& entry) { return entry.second.repository == repository; });
  layout_ = std::move(next);
  return base::OkStatus();
}

}  // namespace nereid::repository
