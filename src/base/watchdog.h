// SPDX-License-Identifier: Apache-2.0
// Notices threads that do not get on with their work, and says so: in the log, with the stack of
// the thread, and to those who ask. Threads only have a heartbeat (base/heartbeat.h), which a
// thread of the watchdog's own reads now and then.
//
// A pause of the whole process (a debugger, a suspended machine) is not taken for a thread that is
// stuck: the watchdog counts the time between two of its own looks, but no more than it meant to
// let pass.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/heartbeat.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace nereid::base {

// A heartbeat that is watched.
struct Watched {
  const Heartbeat& heartbeat;  // outlives the Watch
  // What works there, in a word that is a label of metrics: "reactor".
  std::string_view kind;
  std::string name;  // as in "instance_0"
  // How long it may work without a beat; 0: as long as it likes. By default as the watchdog says.
  std::optional<std::chrono::seconds> limit = std::nullopt;
  // What it is part of, for Watchdog::Summarize; null: nothing.
  const void* part = nullptr;   // such as an instance, which has several heartbeats
  const void* owner = nullptr;  // such as a model, which has several instances
};

// Thread-safe.
class Watchdog {
 public:
  // Something that is stuck.
  struct Stuck {
    std::string kind;
    std::string name;
    std::chrono::seconds time{0};  // for at least so long
    const void* owner = nullptr;

    // Returns a sentence: "the reactor 'nereid-net-0' has not got on for 31 s".
    std::string Describe() const;
  };
  // How much of one owner is stuck.
  struct Summary {
    size_t parts = 0;
    size_t stuck_parts = 0;
  };
  struct KindCounts {
    size_t stuck = 0;     // at the moment
    uint64_t alarms = 0;  // how often something of this kind was found to be stuck
  };
  // Returns what a thread was doing, for the log; may be empty. Called without a lock.
  using Explain = std::function<std::string(pid_t thread)>;

  class Watch;

  // `limit`: how long something may work without a beat, unless it has a limit of its own; 0: as
  // long as it likes.
  explicit Watchdog(std::chrono::seconds limit, Explain explain = {})
      : limit_(limit), explain_(std::move(explain)) {}
  // REQUIRES: nothing is watched any more.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Watches until the result is destroyed, which may wait for a moment. The watchdog's thread
  // starts with the first heartbeat that has a limit.
  [[nodiscard]] Watch Add(Watched watched) NEREID_EXCLUDES(mutex_);

  // Whether anything is stuck. Takes no lock.
  bool has_stuck() const { return stuck_count_.load() > 0; }
  std::vector<Stuck> AllStuck() const NEREID_EXCLUDES(mutex_);
  Summary Summarize(const void* owner) const NEREID_EXCLUDES(mutex_);
  // By kind. A kind is there from its first heartbeat that has a limit.
  std::map<std::string, KindCounts> Counts() const NEREID_EXCLUDES(mutex_);

  // Looks at every heartbeat, `passed` after the last look. Called by the watchdog's thread, and by
  // tests of watchdogs without one.
  void Look(std::chrono::nanoseconds passed) NEREID_EXCLUDES(mutex_);

 private:
  struct Entry {
    Watched watched;
    std::chrono::seconds limit{0};
    uint64_t count = 0;  // at the last look
    std::chrono::nanoseconds same_for{0};
    bool is_stuck = false;
  };
  using Entries = std::list<Entry>;
  // What a look has found out, to be logged without the lock.
  struct Event {
    Stuck what;
    pid_t thread = 0;
    bool is_over = false;
  };

  void Run() NEREID_EXCLUDES(mutex_);
  void Remove(Entries::iterator entry) NEREID_EXCLUDES(mutex_);
  std::optional<Event> Look(Entry& entry, std::chrono::nanoseconds passed) NEREID_REQUIRES(mutex_);
  void Report(const Event& event) const NEREID_EXCLUDES(mutex_);
  static Stuck ToStuck(const Entry& entry);

  const std::chrono::seconds limit_;
  const Explain explain_;
  mutable Mutex mutex_;
  CondVar changed_;
  Entries entries_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, KindCounts> kinds_ NEREID_GUARDED_BY(mutex_);
  std::chrono::nanoseconds period_ NEREID_GUARDED_BY(mutex_){0};
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  std::atomic<size_t> stuck_count_{0};
  Thread thread_;  // started under mutex_
};

// Ends the watching when it is destroyed. Movable; thread-compatible. Empty by default.
class Watchdog::Watch {
 public:
  Watch() = default;
  Watch(Watch&& other) noexcept
      : watchdog_(std::exchange(other.watchdog_, nullptr)), entry_(other.entry_) {}
  Watch& operator=(Watch&& other) noexcept {
    std::swap(watchdog_, other.watchdog_);
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~Watch() {
    if (watchdog_ != nullptr) watchdog_->Remove(entry_);
  }

 private:
  friend class Watchdog;
  Watch(Watchdog& watchdog, Entries::iterator entry) : watchdog_(&watchdog), entry_(entry) {}

  Watchdog* watchdog_ = nullptr;
  Entries::iterator entry_;
};

}  // namespace nereid::base
