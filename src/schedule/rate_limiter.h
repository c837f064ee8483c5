// SPDX-License-Identifier: Apache-2.0
// Shares named resources among the instances of all models (--rate-limit=execution_count): an
// instance executes only while it holds everything that its group needs. A claim is granted all of
// it at once or nothing, so that claims cannot block each other; claims that wait are served in the
// order of their executions so far times their priority, and a later one never passes the first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/mutex.h"
#include "base/status.h"
#include "config/model_config.h"

namespace nereid::schedule {

// The count of each resource, by device; the constants below are the keys for resources that all
// devices share and for those that each device has.
using ResourceMap = std::map<int32_t, std::map<std::string, size_t>>;
inline constexpr int32_t kGlobalResource = -2;
inline constexpr int32_t kEachDeviceResource = -1;

// Thread-safe. Outlives its claims.
class RateLimiter {
 public:
  // `limits` are the counts of the command line; a missing one equals the largest need of any
  // instance.
  explicit RateLimiter(ResourceMap limits);

  // The needs of an instance, and the notification of a grant.
  struct ClaimOptions {
    // A resource that is named several times is needed as often as the counts say together.
    config::RateLimiter needs;
    int32_t device = 0;
    // Called, under no lock of the limiter, when a TryTake that failed would succeed now.
    std::function<void()> on_grant;
  };

  // The claim of one instance for its executions.
  class Claim {
   public:
    // Releases everything like Give, and waits for an on_grant that is being called.
    ~Claim();
    // Takes everything, or waits in line for it.
    bool TryTake();
    bool is_waiting() const;  // in line
    bool is_idle() const;     // neither in line nor granted nor taken
    // Releases what was taken or granted, or leaves the line; with `wants_more`, enters the line
    // again before any claim is served. May grant others and call their on_grant, so not under a
    // lock that those take.
    void Give(bool wants_more = false);

   private:
    friend class RateLimiter;
    enum class Phase { kIdle, kWaiting, kGranted, kTaken };
    // Guarded by the limiter's lock.
    struct State {
      Phase phase = Phase::kIdle;
      // Triton initialises and warms up an instance as if these were executions.
      uint64_t execution_count = 2;
      uint64_t arrival = 0;
      int telling = 0;  // the number of on_grant calls in progress
    };

    Claim(RateLimiter& limiter, ClaimOptions options)
        : limiter_(limiter),
          options_(std::move(options)),
          priority_(std::max<uint64_t>(options_.needs.priority, 1)) {}
    // The position in line: the smallest is served first.
    std::tuple<uint64_t, uint64_t, const Claim*> Rank(const State& state) const {
      return {state.execution_count * priority_, state.arrival, this};
    }

    RateLimiter& limiter_;
    const ClaimOptions options_;
    const uint64_t priority_;
    base::Guarded<State> state_;
  };

  // Fails with InvalidArgument if a limit of the command line is too small for `options.needs`, or
  // a resource is named both as global and as one of each device. If the new need makes a resource
  // larger, others may be granted and notified, as by Give.
  base::Result<std::unique_ptr<Claim>> Register(ClaimOptions options);
  // Describes the count of each resource, one per line.
  std::string Describe();

 private:
  // The count of a resource, and how much is in use.
  struct Resource {
    size_t in_use = 0;
    // How many claims need this many; determines the count without a limit.
    std::map<size_t, size_t> needs;
  };
  using Key = std::pair<int32_t, std::string>;

  static Key KeyOf(const config::RateLimiter::Resource& resource, int32_t device);
  size_t Available(const Key& key) const NEREID_REQUIRES(mutex_);
  // A part of Register: checks the needs of a claim, each for another resource, and counts them.
  base::Status Add(const config::RateLimiter& needs, int32_t device) NEREID_EXCLUDES(mutex_);
  // Returns the limit of the command line, which is zero for a resource that it does not name;
  // nothing if it names none at all.
  std::optional<size_t> Limit(const Key& key) const;
  // Puts an idle claim in line.
  void Join(Claim& claim) NEREID_REQUIRES(mutex_);
  bool Fits(const Claim& claim) const NEREID_REQUIRES(mutex_);
  void Use(const Claim& claim) NEREID_REQUIRES(mutex_);
  void Free(const Claim& claim) NEREID_REQUIRES(mutex_);
  // Grants to the first claims in line while that is possible; returns those to be notified.
  std::vector<Claim*> GrantFirst() NEREID_REQUIRES(mutex_);
  // Calls their on_grant, under no lock.
  void Tell(const std::vector<Claim*>& granted) NEREID_EXCLUDES(mutex_);
  void Unregister(Claim& claim);

  const ResourceMap limits_;
  base::Mutex mutex_;
  base::CondVar told_;
  std::map<Key, Resource> resources_ NEREID_GUARDED_BY(mutex_);
  std::set<std::tuple<uint64_t, uint64_t, const Claim*>> line_ NEREID_GUARDED_BY(mutex_);
  uint64_t arrivals_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::schedule
