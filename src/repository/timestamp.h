// SPDX-License-Identifier: Apache-2.0
// The times when the parts of a model's folder last changed. They are separate so that a new
// version does not reload the others.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "repository/store.h"

namespace nereid::repository {

// The times of one model. A value type; thread-compatible.
class ModelTimestamp {
 public:
  // The time of an empty model, which is older than any other.
  ModelTimestamp() = default;

  // Scans the whole folder. Entries that cannot be examined count as never changed, so that disk
  // errors do not look like a stream of updates. `config_path` determines which of the folder's
  // entries holds the configuration.
  static ModelTimestamp Of(const Store& store, const std::string& model_folder,
                           const std::string& config_path);

  // Whether anything in the folder changed between this and `later`.
  bool IsOlderThan(const ModelTimestamp& later) const { return Latest() < later.Latest(); }
  // Whether this version, or a file that all versions share, changed between this and `later`.
  bool VersionIsOlderThan(const ModelTimestamp& later, int64_t version) const {
    return OfVersion(version) < later.OfVersion(version);
  }
  // Returns the time of the newest part in nanoseconds; 0 if there is none.
  int64_t Latest() const;
  // Sets the configuration's time, so that the next scan of the folder finds a change.
  void SetConfigTime(int64_t time_ns);

 private:
  int64_t OfVersion(int64_t version) const;

  int64_t folder_ns_ = 0;
  std::map<std::string, int64_t> entries_ns_;  // newest time under each entry of the folder
  std::string config_entry_;
};

}  // namespace nereid::repository
