// SPDX-License-Identifier: Apache-2.0
// What each caller may take: requests and bytes per second, and requests at the same time, of the
// whole server and of single models. A request that asks for more is refused at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

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
  ~CallerQuotas();
  CallerQuotas(const CallerQuotas&) = delete;
  CallerQuotas& operator=(const CallerQuotas&) = delete;

  // Takes what `request`, which has a model and its inputs, needs of its caller's quotas until its
  // last response. If that is too much, takes nothing and returns an error that says when to try
  // again. Requests without a caller, and callers without limits, cost nothing; for a caller whom
  // the thread has seen lately, only a lock of that caller's is taken.
  base::Status Admit(core::Request& request, uint64_t now_ns);

 private:
  class InFlight;
  // The use of one caller, of everything or of one model.
  struct Use {
    explicit Use(const core::CallerLimits& of);
    bool IsIdle(uint64_t now_ns);
    // Returns why `request`, whose inputs have `size` bytes, is too much.
    base::Status Check(const core::Request& request, double size, uint64_t now_ns);
    // REQUIRES: Check returned OK.
    void Take(double size, uint64_t now_ns);
    // Tells the request what is left of the requests, unless another limit leaves less.
    void SayWhatIsLeft(core::Request& request, uint64_t now_ns);

    const core::CallerLimits limits;
    TokenBucket requests;
    TokenBucket bytes;
    std::atomic<uint32_t> in_flight{0};  // lowered without the account's lock
  };
  // What one caller uses.
  struct Account {
    Account(const CallerQuotas& of, core::CallerRef owner);
    // Of `model`, with its limits for each caller.
    std::shared_ptr<Use> UseOf(const core::Model& model, uint64_t now_ns) NEREID_REQUIRES(mutex);
    bool IsIdle(uint64_t now_ns) NEREID_REQUIRES(mutex);

    const CallerQuotas& quotas;
    base::Mutex mutex;
    // Keeps the address, by which the account is found. Null once it is forgotten.
    core::CallerRef caller NEREID_GUARDED_BY(mutex);
    Use own NEREID_GUARDED_BY(mutex);
    std::map<const core::Model*, std::shared_ptr<Use>> models NEREID_GUARDED_BY(mutex);
  };
  // The accounts that a thread has used lately.
  class Known;

  std::shared_ptr<Account> AccountOf(const core::CallerRef& caller, uint64_t now_ns)
      NEREID_EXCLUDES(mutex_);
  // Forgets callers who use nothing.
  void Prune(uint64_t now_ns) NEREID_REQUIRES(mutex_);
  // Returns nothing if the account is another caller's or forgotten.
  std::optional<base::Status> AdmitTo(Account& account, core::Request& request, uint64_t now_ns);

  base::Mutex mutex_;
  std::map<const core::Caller*, std::shared_ptr<Account>> accounts_ NEREID_GUARDED_BY(mutex_);
  size_t prune_at_ NEREID_GUARDED_BY(mutex_) = 64;
};

}  // namespace nereid::schedule
