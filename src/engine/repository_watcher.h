// SPDX-License-Identifier: Apache-2.0
// The thread of a running server that looks at its repositories: seldom at all of their files
// (polling), and several times a second at their generation files, by which one command reaches all
// servers (repository/generation.h).
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "engine/generation_watch.h"
#include "engine/wish_tasks.h"
#include "repository/store.h"

namespace nereid::engine {

// Both 0: never.
struct WatchIntervals {
  std::chrono::milliseconds polls{0};
  std::chrono::milliseconds looks{0};  // at the generation files
};

// Thread-safe, except that Begin and Start are called once, in this order.
class RepositoryWatcher {
 public:
  // What is done with what is seen. Called on the thread of the watcher, and in Begin.
  struct Actions {
    std::function<std::vector<std::string>()> repositories;  // their paths, in their order
    // Called in time, and as soon as a generation file has changed. May be null. Blocks.
    std::function<void()> poll;
    // Says which models polls must not find.
    std::function<void(std::set<std::string> names)> keep_out;
    // If `fulfil` is null, wishes have no other effect than these two.
    WishTasks::Actions wishes;
  };

  // `store` outlives this.
  RepositoryWatcher(const repository::Store& store, WatchIntervals intervals, Actions actions);

  // Looks at the generation files before the first models are loaded.
  void Begin();
  // Fulfils what they asked for, and returns when that is done.
  void FulfilFirst();
  // Starts the thread, if there is anything to do.
  void Start();
  // Ends the thread; returns false if it is still busy at `deadline`. Start then has no effect.
  bool Stop(base::TimePoint deadline);

 private:
  void Run();
  // Returns whether a file has changed.
  bool Look();

  const WatchIntervals intervals_;
  const Actions actions_;
  GenerationWatch watch_;  // of the thread, and of Begin before that
  std::vector<GenerationWatch::News::Asked> first_;
  WishTasks tasks_;
  std::stop_source stop_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool is_running_ NEREID_GUARDED_BY(mutex_) = false;
  base::Thread thread_;
};

}  // namespace nereid::engine
