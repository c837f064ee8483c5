// SPDX-License-Identifier: Apache-2.0
// When the parts of a model's folder last changed, kept apart so that a new version does not reload
// the versions beside it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "repository/store.h"

namespace nereid::repository {

// A value type; thread-compatible.
class ModelTimestamp {
 public:
  // Of nothing: older than everything.
  ModelTimestamp() = default;

  // Looks through the whole folder. What cannot be examined counts as never changed, so that
  // trouble with a disk does not look like a stream of updates. `config_path` tells which of the
  // folder's entries holds the configuration.
  static ModelTimestamp Of(const Store& store, const std::string& model_folder,
                           const std::string& config_path);

  // Whether anything in the folder changed since.
  bool IsOlderThan(const ModelTimestamp& later) const { return Latest() < later.Latest(); }
  // Whether this version, or a file that all versions share, changed since.
  bool VersionIsOlderThan(const ModelTimestamp& later, int64_t version) const {
    return OfVersion(version) < later.OfVersion(version);
  }
  // Nanoseconds of the newest part; 0 when there is none.
  int64_t Latest() const;
  // Counts the configuration as changed at `time_ns`: the next look at the folder then differs.
  void SetConfigTime(int64_t time_ns);

 private:
  int64_t OfVersion(int64_t version) const;

  int64_t folder_ns_ = 0;
  std::map<std::string, int64_t> entries_ns_;  // newest time under each entry of the folder
  std::string config_entry_;
};

}  // namespace nereid::repository
