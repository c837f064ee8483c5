// SPDX-License-Identifier: Apache-2.0
#include "repository/timestamp.h"

#include <algorithm>

#include "base/log.h"
#include "config/paths.h"

namespace nereid::repository {
namespace {

// Links can make a folder contain itself; no real model is this deep.
constexpr int kMaxDepth = 32;

int64_t NewestUnder(const Store& store, const std::string& path, bool is_folder, int depth) {
  const auto own = store.ModifiedNs(path);
  if (!own.ok()) {
    NEREID_LOG(kError, "failed to determine modification time for '{}': {}", path,
               own.status().message());
    return 0;
  }
  if (!is_folder || depth >= kMaxDepth) return *own;
  const auto entries = store.List(path);
  if (!entries.ok()) {
    NEREID_LOG(kError, "failed to determine modification time for '{}': {}", path,
               entries.status().message());
    return 0;
  }
  int64_t newest = *own;
  for (const Entry& entry : *entries) {
    newest = std::max(
        newest, NewestUnder(store, config::JoinPath(path, entry.name), entry.is_folder, depth + 1));
  }
  return newest;
}

bool IsVersion(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

ModelTimestamp ModelTimestamp::Of(const Store& store, const std::string& model_folder,
                                  const std::string& config_path) {
  ModelTimestamp timestamp;
  const auto own = store.ModifiedNs(model_folder);
  const auto entries = store.List(model_folder);
  if (!own.ok() || !entries.ok()) {
    NEREID_LOG(kError, "failed to determine modification time for '{}': {}", model_folder,
               (own.ok() ? entries.status() : own.status()).message());
    return timestamp;
  }
  timestamp.folder_ns_ = *own;
  for (const Entry& entry : *entries) {
    const std::string path = config::JoinPath(model_folder, entry.name);
    timestamp.entries_ns_[entry.name] = NewestUnder(store, path, entry.is_folder, 0);
    if (config_path == path || config_path.rfind(path + "/", 0) == 0) {
      timestamp.config_entry_ = entry.name;
    }
  }
  return timestamp;
}

int64_t ModelTimestamp::Latest() const {
  int64_t latest = folder_ns_;
  for (const auto& [name, time] : entries_ns_) latest = std::max(latest, time);
  return latest;
}

int64_t ModelTimestamp::OfVersion(int64_t version) const {
  const std::string own = std::to_string(version);
  int64_t latest = 0;
  for (const auto& [name, time] : entries_ns_) {
    // The configuration is compared by its content, and other versions do not matter.
    if (name != own && (IsVersion(name) || name == config_entry_)) continue;
    latest = std::max(latest, time);
  }
  return latest;
}

void ModelTimestamp::SetConfigTime(int64_t time_ns) {
  // A configuration override is possible for a model without a configuration file, too.
  entries_ns_[config_entry_.empty() ? "config.pbtxt" : config_entry_] = time_ns;
}

}  // namespace nereid::repository
