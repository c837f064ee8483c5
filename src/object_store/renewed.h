// SPDX-License-Identifier: Apache-2.0
// A token or key that expires: fetched when it is first needed, and again before it expires.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/unique_function.h"

namespace nereid::object_store {

// A value and the time when it becomes useless.
template <typename T>
struct Expiring {
  T value;
  std::chrono::seconds lifetime = std::chrono::seconds::max();  // from now; max: for ever
  // Not OK: none was found, and this says why; `value` is what does instead for that lifetime.
  base::Status absence = {};
};

// Thread-safe. One caller at a time fetches, without a lock; the others get the value before it, or
// wait if that has expired.
template <typename T>
class Renewed {
 public:
  using Fetch = base::UniqueFunction<base::Result<Expiring<T>>()>;
  using Clock = std::function<base::TimePoint()>;

  explicit Renewed(
      Fetch fetch, Clock clock = [] { return std::chrono::steady_clock::now(); })
      : fetch_(std::move(fetch)), clock_(std::move(clock)) {}

  // Returns a value that has not expired, or why none can be had. If the renewal of a value that is
  // still good fails, that value is used for the time being. Where a value was found once, its
  // absence later is a failure, too: who gave it may not respond for a moment.
  base::Result<T> Get() {
    {
      base::MutexLock lock(mutex_);
      const uint64_t before = fetches_;
      for (;;) {
        const base::TimePoint now = clock_();
        if (value_ && now < renew_at_) return *value_;
        if (!is_fetching_) break;
        if (value_ && now < expires_) return *value_;
        fetched_.Wait(mutex_);
        // Those who waited for an attempt that failed do not all try again.
        if (fetches_ != before && !failure_.ok()) return failure_;
      }
      is_fetching_ = true;
    }
    base::Result<Expiring<T>> fetched = fetch_();
    base::Status failure;
    std::optional<T> result;
    {
      base::MutexLock lock(mutex_);
      is_fetching_ = false;
      ++fetches_;
      if (was_found_ && fetched.ok() && !fetched->absence.ok()) fetched = fetched->absence;
      failure = fetched.status();
      failure_ = failure;
      Take(std::move(fetched));
      result = value_;
      fetched_.NotifyAll();
    }
    if (!result) return failure;
    if (!failure.ok()) {
      NEREID_LOG(kWarning, "a token is not renewed yet: {}", failure.message());
    }
    return *std::move(result);
  }

  // Says that a server has refused the value. Returns whether the next Get fetches another one,
  // which it does not for a value that is only just fetched.
  bool Refuse() {
    base::MutexLock lock(mutex_);
    if (!value_ || clock_() < fetched_at_ + kMinAge) return false;
    value_.reset();
    return true;
  }

 private:
  static constexpr std::chrono::minutes kMaxMargin{5};
  static constexpr std::chrono::seconds kMinAge{10};
  static constexpr std::chrono::seconds kPause{30};

  void Take(base::Result<Expiring<T>> fetched) NEREID_REQUIRES(mutex_) {
    const base::TimePoint now = clock_();
    if (!fetched.ok()) {
      if (value_ && now >= expires_) value_.reset();
      renew_at_ = std::min(now + kPause, expires_);
      return;
    }
    if (fetched->absence.ok()) was_found_ = true;
    value_ = std::move(fetched->value);
    fetched_at_ = now;
    // A server that keeps tokens itself may return one that soon expires; without the second limit
    // it would be asked all the time.
    using std::chrono::seconds;
    const seconds lifetime = std::min<seconds>(fetched->lifetime, std::chrono::years(1));
    expires_ = now + lifetime;
    renew_at_ = expires_ - std::min<seconds>(kMaxMargin, lifetime / 4);
  }

  Fetch fetch_;  // called by the thread that set is_fetching_
  const Clock clock_;
  base::Mutex mutex_;
  base::CondVar fetched_;
  bool is_fetching_ NEREID_GUARDED_BY(mutex_) = false;
  uint64_t fetches_ NEREID_GUARDED_BY(mutex_) = 0;
  base::Status failure_ NEREID_GUARDED_BY(mutex_);    // of the last fetch
  bool was_found_ NEREID_GUARDED_BY(mutex_) = false;  // whether a fetch has found a value
  std::optional<T> value_ NEREID_GUARDED_BY(mutex_);
  base::TimePoint fetched_at_ NEREID_GUARDED_BY(mutex_);
  base::TimePoint renew_at_ NEREID_GUARDED_BY(mutex_);
  base::TimePoint expires_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::object_store
