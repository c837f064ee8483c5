// SPDX-License-Identifier: Apache-2.0
// Models that are loaded when a request asks for them, in the control mode "ondemand", and unloaded
// when others need their memory. EvictionPolicy decides which go; this class carries it out, with
// one thread that loads one model at a time: so what a load takes can be measured, and memory never
// exceeds the budgets by more than one load.
//
// Requests for a model that is loaded know nothing of this: what they use is read from the models'
// statistics when somebody needs memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "base/thread.h"
#include "base/timers.h"
#include "engine/demand_errors.h"
#include "engine/demand_host.h"
#include "engine/demand_queue.h"
#include "engine/eviction_policy.h"
#include "engine/load_failures.h"
#include "engine/measured_load.h"
#include "engine/model_use.h"
#include "service/service.h"

namespace nereid::engine {

// The settings of models on demand.
struct OnDemandOptions {
  uint64_t memory_budget = 0;      // bytes of main memory for models; 0: unlimited
  uint64_t gpu_memory_budget = 0;  // bytes of each GPU; 0: unlimited
  std::chrono::milliseconds load_wait = std::chrono::seconds(30);  // of a request for its model
  std::chrono::milliseconds min_stay = std::chrono::seconds(5);    // of a model that was loaded
  std::chrono::milliseconds idle_unload{0};  // after how long without requests; 0: never
  std::set<std::string> pinned;              // never unloaded
  // How long requests for a model that failed to load get the error again before the next attempt;
  // doubles with each failure, up to a minute.
  std::chrono::milliseconds failure_pause = std::chrono::seconds(1);
  size_t most_waiting = 10'000;  // requests that wait at once
};

// What models on demand have done so far, and their state, for the metrics.
struct OnDemandCounts {
  uint64_t loads = 0;
  uint64_t failed_loads = 0;
  double load_seconds = 0;  // of both
  uint64_t memory_evictions = 0;
  uint64_t idle_unloads = 0;
  uint64_t waits = 0;  // requests that waited, whatever came of it
  double wait_seconds = 0;
  uint64_t timeouts = 0;  // of them, those that waited too long
  uint64_t refusals = 0;  // of them, those whose model can never fit
  size_t waiting = 0;
  size_t orders = 0;  // explicit loads that have not begun
  size_t known = 0;
  size_t loaded = 0;
  std::vector<std::string> kinds;  // of memory: "CPU", "GPU 0"
  MemoryBytes used;
  MemoryBytes budgets;
};

// Thread-safe.
class OnDemand {
 public:
  // Gets a pin on the model, or why there is none. Called once, on any thread.
  using Waiter = service::Service::ModelWaiter;

  // `host` and `timers` outlive this.
  OnDemand(DemandHost& host, base::Timers& timers, OnDemandOptions options);
  // Stops without a deadline if Stop was not called.
  ~OnDemand();

  // Reads which models there are, and forgets the failed loads of those that are gone. Blocks while
  // it reads the repositories.
  void Refresh();
  // Whether the repositories have a model of that name.
  bool IsKnown(std::string_view name) const;
  // Whether a request for the model would be served, as far as known: its last load did not fail.
  bool IsServable(std::string_view name) const;
  // Gives `done` a pin on the model, which is loaded first if it is not. Does not block: `done` is
  // called at once if nothing needs to be waited for, otherwise later by a thread that may take its
  // time. Errors are Unavailable (still loading, no memory, failed to load) or those of
  // LifeCycle::Find.
  void Await(std::string_view name, std::string_view version, Waiter done);
  // Loads the model now, also if the last load failed. A model with options stays until it is
  // unloaded explicitly or a load brings other files, because a load after an unload would bring
  // those. Blocks.
  base::Status Load(const std::string& name, const service::LoadOptions& options);
  // Unloads the model, whatever uses it; the next request loads it again. Blocks.
  base::Status Unload(const std::string& name, bool with_parts);
  // Tells all who wait and accepts no more work. Returns false if a load is still in progress at
  // `deadline`.
  bool Stop(base::TimePoint deadline);

  OnDemandCounts Counts() const;

 private:
  enum class Progress { kDone, kBlocked };

  MemoryKind Kind(size_t index) const { return {.index = index, .name = kinds_[index]}; }
  void Run();
  // Serves the models in the queue that can be served now; returns whether any was.
  bool ServeQueue();
  Progress Serve(const std::string& name, bool may_evict);
  // Loads the model, for which there is room, and tells everybody who waits for it.
  void LoadNow(const std::string& name);
  // Records what came of a load; returns what the requests are told that wait for it.
  base::Status Settle(const std::string& name, const MeasuredLoad& load);
  // Comes back below the budgets, but not by unloading `newest`, and unloads what nobody uses.
  void Tidy(const std::string& newest);
  // Unloads the victims that are idle; returns whether all were. Counts them in `counter`.
  bool Evict(const std::vector<std::string>& victims, uint64_t OnDemandCounts::* counter);
  // Reads the use of all models; returns which of them must stay. Those that nobody knew of share
  // the memory `unclaimed`.
  std::set<std::string> Observe(const MemoryBytes& unclaimed = {});
  // Takes the requests that wait for the model, to be told `status`.
  DemandOutcomes TakeWaitingLocked(const std::string& name, const base::Status& status)
      NEREID_REQUIRES(mutex_);
  // Takes the model off the queue, with all who wait for it, to be told `status`.
  DemandOutcomes FinishLocked(const std::string& name, const base::Status& status)
      NEREID_REQUIRES(mutex_);
  void TellLocked(DemandOrder& order, const base::Status& status) NEREID_REQUIRES(mutex_);
  // Counts a request as one that no longer waits.
  void NoteWaitLocked(const WaitingRequest& waiting, base::TimePoint now) NEREID_REQUIRES(mutex_);
  PendingModel& QueueLocked(const std::string& name) NEREID_REQUIRES(mutex_);
  // Gives up the requests that have waited too long.
  void OnTimer();
  base::Status TimeoutLocked(const std::string& name, const PendingModel& pending,
                             base::TimePoint now) const NEREID_REQUIRES(mutex_);
  base::Status NeverFitsLocked(const std::string& name, size_t kind) const NEREID_REQUIRES(mutex_);
  // Pins the models of the outcomes without an error, and gives all to threads that pass them on.
  void Post(DemandOutcomes outcomes);

  DemandHost& host_;
  const OnDemandOptions options_;
  const std::vector<std::string> kinds_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::set<std::string, std::less<>> known_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, PendingModel> pending_ NEREID_GUARDED_BY(mutex_);
  std::deque<std::string> queue_ NEREID_GUARDED_BY(mutex_);  // the keys of pending_, oldest first
  LoadFailures failures_ NEREID_GUARDED_BY(mutex_);
  EvictionPolicy policy_ NEREID_GUARDED_BY(mutex_);
  ModelUse use_ NEREID_GUARDED_BY(mutex_);
  OnDemandCounts counts_ NEREID_GUARDED_BY(mutex_);
  uint64_t unloads_ NEREID_GUARDED_BY(mutex_) = 0;  // explicit ones
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
  bool has_ended_ NEREID_GUARDED_BY(mutex_) = false;
  base::TaskPool notices_;
  base::Timer timer_;  // of the waiting request that gives up next; uses notices_
  base::Thread thread_;
};

}  // namespace nereid::engine
