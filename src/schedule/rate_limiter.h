// SPDX-License-Identifier: Apache-2.0
// Shares named resources among the instances of all models (--rate-limit=execution_count): an
// instance executes only while it holds everything that its group needs. A claim is granted all of
// it at once or nothing; claims that wait are served in the order of their executions so far times
// their priority.
//
// A claim that waits holds back those behind it that need one of its resources, so that none
// starves. But what it waits for may be held by a model that has sent a request to one of those. So
// when nothing that the first in line needs has been given back for a while, the line is open for
// ten times as long, and whoever finds what it needs takes it. Then it is closed for twice as long
// as before, because executions may last longer than that: in the end the first in line has its
// turn.
#pragma once

#include <algorithm>
#include <chrono>
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
#include "base/timers.h"
#include "config/model_config.h"

namespace nereid::schedule {

// The count of each resource, by device; the constants below are the keys for resources that all
// devices share and for those that each device has.
using ResourceMap = std::map<int32_t, std::map<std::string, size_t>>;
inline constexpr int32_t kGlobalResource = -2;
inline constexpr int32_t kEachDeviceResource = -1;

// Thread-safe. Outlives its claims.
class RateLimiter {
  struct Resource;

 public:
  // `limits` are the counts of the command line; a missing one equals the largest need of any
  // instance. `timers` outlive this. `patience` is how long the line is first closed.
  RateLimiter(ResourceMap limits, base::Timers& timers,
              std::chrono::nanoseconds patience = std::chrono::milliseconds(100));

  // The needs of an instance, and the notification of a grant.
  struct ClaimOptions {
    // A resource that is named several times is needed as often as the counts say together.
    config::RateLimiter needs;
    int32_t device = 0;
    // Called, under no lock of the limiter, when a TryTake that failed would succeed now. May be
    // called by the timers' thread.
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
    // Whether the claim will go soon. Until then it keeps no other one from naming its resources as
    // of the other kind: they are counted apart.
    void SetLeaving(bool is_leaving);

   private:
    friend class RateLimiter;
    enum class Phase { kIdle, kWaiting, kGranted, kTaken };
    // Guarded by the limiter's lock.
    struct State {
      Phase phase = Phase::kIdle;
      // Triton initialises and warms up an instance as if these were executions.
      uint64_t execution_count = 2;
      uint64_t arrival = 0;
      bool is_leaving = false;
      int telling = 0;  // the number of on_grant calls in progress
    };

    // So much of a resource.
    struct Need {
      Resource& resource;
      size_t count;
    };

    Claim(RateLimiter& limiter, std::vector<Need> needs, uint64_t priority,
          std::function<void()> on_grant)
        : limiter_(limiter),
          needs_(std::move(needs)),
          priority_(std::max<uint64_t>(priority, 1)),
          on_grant_(std::move(on_grant)) {}
    // The position in line: the smallest is served first.
    std::tuple<uint64_t, uint64_t, Claim*> Rank(const State& state) {
      return {state.execution_count * priority_, state.arrival, this};
    }

    RateLimiter& limiter_;
    const std::vector<Need> needs_;  // the resources are guarded by the limiter's lock
    const uint64_t priority_;
    const std::function<void()> on_grant_;
    base::Guarded<State> state_;
  };

  // Fails with InvalidArgument if a limit of the command line is too small for `options.needs`, or
  // a resource is named both as global and as one of each device, by these needs or by a claim that
  // is not leaving. If the new need makes a resource larger, others may be granted and notified, as
  // by Give.
  base::Result<std::unique_ptr<Claim>> Register(ClaimOptions options);
  // Describes the count of each resource, one per line.
  std::string Describe();

 private:
  // The count of a resource, and how much is in use.
  struct Resource {
    // Without a limit there is as much as the claim needs that needs most.
    size_t count() const { return limit ? *limit : needs.empty() ? 0 : needs.rbegin()->first; }
    size_t available() const { return count() > in_use ? count() - in_use : 0; }

    std::optional<size_t> limit;
    size_t in_use = 0;
    std::map<size_t, size_t> needs;  // how many claims need this many
    size_t staying = 0;              // the claims that need it and are not leaving
    uint64_t held_back = 0;          // the last look at the line in which somebody waited for it
  };
  using Key = std::pair<int32_t, std::string>;

  static Key KeyOf(const config::RateLimiter::Resource& resource, int32_t device);
  // A part of Register: checks the needs of a claim, each for another resource, counts them, and
  // finds the resources.
  base::Result<std::vector<Claim::Need>> Add(const config::RateLimiter& needs, int32_t device)
      NEREID_REQUIRES(mutex_);
  // Returns the limit of the command line, which is zero for a resource that it does not name;
  // nothing if it names none at all.
  std::optional<size_t> Limit(const Key& key) const;
  // Puts an idle claim in line.
  void Join(Claim& claim) NEREID_REQUIRES(mutex_);
  bool Fits(const Claim& claim) const NEREID_REQUIRES(mutex_);
  bool IsHeldBack(const Claim& claim) const NEREID_REQUIRES(mutex_);
  void Use(Claim& claim) NEREID_REQUIRES(mutex_);
  // Looks at the line, and grants to all who may have what they need; returns them for Tell, but
  // for `taker`, which knows.
  std::vector<Claim*> Grant(const Claim* taker = nullptr) NEREID_REQUIRES(mutex_);
  // The first in line that lacks something is this one; null: there is none.
  void NoteFirst(const Claim* claim) NEREID_REQUIRES(mutex_);
  // Whether the claim has a resource that the first one needs.
  bool IsNeededByFirst(const Claim& claim) const NEREID_REQUIRES(mutex_);
  // Lets the timer look again after so long, unless it will sooner.
  void LookAgain(uint64_t after_ns) NEREID_REQUIRES(mutex_);
  void OnTimer() NEREID_EXCLUDES(mutex_);
  // Calls their on_grant, under no lock.
  void Tell(const std::vector<Claim*>& granted) NEREID_EXCLUDES(mutex_);
  void NoteLeaving(Claim& claim, bool is_leaving) NEREID_REQUIRES(mutex_);
  void Unregister(Claim& claim);

  const ResourceMap limits_;
  const uint64_t first_patience_ns_;
  base::Mutex mutex_;
  base::CondVar told_;
  std::map<Key, Resource> resources_ NEREID_GUARDED_BY(mutex_);
  std::set<std::tuple<uint64_t, uint64_t, Claim*>> line_ NEREID_GUARDED_BY(mutex_);
  uint64_t arrivals_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t looks_ NEREID_GUARDED_BY(mutex_) = 0;
  bool holds_back_ NEREID_GUARDED_BY(mutex_) = false;  // somebody, at the last look
  uint64_t gives_ NEREID_GUARDED_BY(mutex_) = 0;       // of what the first one needs
  // The first in line that lacks something, and what follows from how long it has:
  const Claim* first_ NEREID_GUARDED_BY(mutex_) = nullptr;
  bool is_open_ NEREID_GUARDED_BY(mutex_) = false;  // nobody is held back
  uint64_t patience_ns_ NEREID_GUARDED_BY(mutex_) = 0;
  uint64_t armed_at_ns_ NEREID_GUARDED_BY(mutex_) = 0;  // when timer_ looks next; 0: it does not
  uint64_t gives_seen_ NEREID_GUARDED_BY(mutex_) = 0;   // gives_ when timer_ was armed
  base::Timer timer_;
};

}  // namespace nereid::schedule
