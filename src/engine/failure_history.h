// SPDX-License-Identifier: Apache-2.0
// Remembers which loads failed last time, and why. A polling server retries them after every scan
// of the repositories, and its log should report only new failures.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/version_key.h"

namespace nereid::engine {

// The last failure of each version. Thread-compatible.
class FailureHistory {
 public:
  // Stands for a version if the failure concerns the whole model.
  static constexpr int64_t kNoVersion = -1;

  // Whether the last load of this version failed with files of exactly this time.
  bool IsRepetition(const VersionKey& key, int64_t file_time_ns) const;
  // Records a failure. Returns whether it differs from the previous record.
  bool Note(const VersionKey& key, int64_t file_time_ns, std::string reason);
  // Called when the version was loaded or is no longer wanted.
  void Forget(const VersionKey& key) { failures_.erase(key); }

 private:
  // The last failure of a version: the time of the files that it was loaded from (nanoseconds of
  // the store's clock), and the reason.
  struct Failure {
    int64_t file_time_ns = 0;
    std::string reason;
    bool operator==(const Failure&) const = default;
  };

  std::map<VersionKey, Failure> failures_;
};

}  // namespace nereid::engine
