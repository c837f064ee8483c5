// SPDX-License-Identifier: Apache-2.0
// Every known model and version with its state: what requests are resolved against and the repository
// index is printed from. Immutable; a change publishes a new table.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "core/model.h"
#include "service/service.h"

namespace nereid::engine {

enum class VersionState { kUnknown, kReady, kUnavailable, kLoading, kUnloading };

// "READY", ...: as the repository index prints it.
std::string_view StateName(VersionState state);

struct VersionRecord {
  VersionState state = VersionState::kUnknown;
  std::string reason;                  // why it is not ready
  std::shared_ptr<core::Model> model;  // set while it is ready or unloading; shared with the life cycle
};

struct ModelRecord {
  std::string reason;  // why there is no version at all
  std::map<int64_t, VersionRecord> versions;
};

// The number that a version's text says. The error is that of every protocol.
base::Result<int64_t> ParseVersion(std::string_view text);

class ModelTable {
 public:
  ModelTable() = default;
  explicit ModelTable(std::map<std::string, ModelRecord> models);

  // Pins a ready version; "" is the highest ready one.
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) const;
  // The same for a step of an ensemble, -1 being the highest; a version that is unloading can be pinned
  // as long as ensembles that contain it finish their requests.
  base::Result<core::ModelHandle> FindForStep(std::string_view name, int64_t version) const;
  // The versions that are ready, ascending.
  std::vector<int64_t> ReadyVersions(std::string_view name) const;
  // Sorted by name, then version.
  std::vector<service::IndexEntry> Index(bool only_ready) const;
  // Whether every version of every model is ready.
  bool all_ready() const { return all_ready_; }
  const std::map<std::string, ModelRecord>& models() const { return models_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Entry {
    const ModelRecord* record = nullptr;
    core::Model* latest = nullptr;  // the highest version that is ready
    core::Model* latest_loaded = nullptr;  // or unloading
  };

  std::map<std::string, ModelRecord> models_;
  bool all_ready_ = true;
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> index_;
};

}  // namespace nereid::engine
