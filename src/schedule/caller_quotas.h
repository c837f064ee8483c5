// SPDX-License-Identifier: Apache-2.0
// What each caller may take: requests and bytes per second, and requests at the same time, of the
// whole server and of single models. A request that asks for more is refused at once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "core/caller.h"
#include "core/request.h"
#include "schedule/token_bucket.h"

namespace nereid::schedule {

// Thread-safe. Outlives the requests that it admits.
class CallerQuotas {
 public:
  CallerQuotas() = default;
  CallerQuotas(const CallerQuotas&) = delete;
  CallerQuotas& operator=(const CallerQuotas&) = delete;

  // Takes what `request`, which has a model and its inputs, needs of its caller's quotas until its
  // last response. If that is too much, takes nothing and returns an error that says when to try
  // again. Requests without a caller, and callers without limits, cost nothing.
  base::Status Admit(core::Request& request, uint64_t now_ns);

 private:
  class InFlight;
  // The use of one caller, of everything or of one model.
  struct Use {
    explicit Use(const core::CallerLimits& of);
    const core::CallerLimits limits;
    TokenBucket requests;
    TokenBucket bytes;
    uint32_t in_flight = 0;  // guarded by mutex_
  };
  using Uses = std::array<std::shared_ptr<Use>, 2>;
  // The address of a caller, and of a model, or null for all of them.
  using Key = std::pair<const core::Caller*, const void*>;
  struct Entry {
    core::CallerRef caller;  // keeps the address
    std::shared_ptr<Use> use;
  };

  std::shared_ptr<Use> UseOf(const core::CallerRef& caller, const void* model,
                             const core::CallerLimits& limits) NEREID_REQUIRES(mutex_);
  // Forgets callers who use nothing.
  void Prune(uint64_t now_ns) NEREID_REQUIRES(mutex_);
  base::Status Take(core::Request& request, Uses& uses, uint64_t now_ns) NEREID_REQUIRES(mutex_);
  void Release(const Uses& uses) NEREID_EXCLUDES(mutex_);

  base::Mutex mutex_;
  std::map<Key, Entry> uses_ NEREID_GUARDED_BY(mutex_);
  size_t prune_at_ NEREID_GUARDED_BY(mutex_) = 64;
};

}  // namespace nereid::schedule
