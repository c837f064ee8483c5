// SPDX-License-Identifier: Apache-2.0
// One core::Caller for each sender who is known at the moment.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "core/caller.h"

namespace nereid::access {

// Thread-safe.
class CallerTable {
 public:
  // Returns the caller of that id that somebody still refers to, or a new one. Other limits make
  // another caller.
  core::CallerRef Get(std::string_view id, const core::CallerLimits& limits);

 private:
  void ForgetUnused() NEREID_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::map<std::string, std::weak_ptr<const core::Caller>, std::less<>> callers_
      NEREID_GUARDED_BY(mutex_);
  size_t cleans_at_ NEREID_GUARDED_BY(mutex_) = 64;
};

}  // namespace nereid::access
