// SPDX-License-Identifier: Apache-2.0
// Remembers which loads failed last time, and why. A server that polls tries them again with every
// look at the repositories, and its log is to tell only what is new.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/version_key.h"

namespace nereid::engine {

// Thread-compatible.
class FailureHistory {
 public:
  // In the place of a version: what failed concerns the whole model.
  static constexpr int64_t kNoVersion = -1;

  // Whether the last load of this version failed, from files of this very time.
  bool IsRepetition(const VersionKey& key, int64_t file_time_ns) const;
  // Notes a failure. True when it is not the one that was noted before.
  bool Note(const VersionKey& key, int64_t file_time_ns, std::string reason);
  // The version was loaded, or is not wanted any more.
  void Forget(const VersionKey& key) { failures_.erase(key); }

 private:
  // The last failure of a version: when the files were last changed that it was loaded from
  // (nanoseconds of the store's clock), and why it failed.
  struct Failure {
    int64_t file_time_ns = 0;
    std::string reason;
    bool operator==(const Failure&) const = default;
  };

  std::map<VersionKey, Failure> failures_;
};

}  // namespace nereid::engine
