// SPDX-License-Identifier: Apache-2.0
// An instance, and the pool's data about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/heartbeat.h"
#include "base/watchdog.h"
#include "core/open_requests.h"
#include "core/request.h"
#include "core/scheduler.h"
#include "schedule/inline_policy.h"
#include "schedule/instance_claim.h"
#include "schedule/instance_thread.h"

namespace nereid::schedule {

// The stages of its life: it is started (its thread, if it needs its own, waits to be admitted or
// dropped); it is admitted; it is leaving (it still runs what is bound to it); it is over (nothing
// is bound to it, and it runs nothing more) and is destroyed as soon as its backend has no request
// any more, and it is idle and without a thread.
struct PooledInstance {
  // An execution. Confined to the thread that has made the instance busy.
  struct Execution {
    std::vector<core::RequestPtr> batch;
    uint64_t taken_ns = 0;     // when the instance became busy
    uint64_t duration_ns = 0;  // set at the end
    size_t request_count = 0;  // the number of executed requests
    bool is_watched = false;   // see InlineRecord
    bool is_own = false;       // one request, of the reactor that executes it
  };
  // Guarded by the pool's lock.
  struct State {
    size_t index = 0;  // the instance's number, constant once it is admitted; reused
    uint64_t id = 0;   // like `index`, but never reused
    bool is_leaving = false;
    bool is_out = false;  // of the pool, which may have given its number to another instance
    bool is_busy = false;
    bool is_begun = false;  // busy, and the instance's thread has to end the execution
    InlineRecord record;
  };

  // `main` is the main function of the instance's thread.
  PooledInstance(std::unique_ptr<core::Instance> made, InlineRecord record,
                 core::OpenRequests::Watcher& watcher, std::function<void(PooledInstance&)> main)
      : instance(std::move(made)),
        thread(*instance, [this, main = std::move(main)] { main(*this); }),
        open(watcher),
        state(State{.record = record}) {}

  const std::unique_ptr<core::Instance> instance;
  // The heartbeat of the instance's thread, which rests during executions: those have heartbeats of
  // their own (core/execution_mark.h), and may take as long as they like.
  base::Heartbeat heartbeat;
  base::Watchdog::Watch watch;
  InstanceClaim claim;  // constant while the instance may execute
  InstanceThread thread;
  // The requests that the backend has. Grows under the pool's lock.
  core::OpenRequests open;
  base::Guarded<State> state;
  Execution execution;
};

// All instances of a model, or some.
using PooledInstances = std::vector<std::unique_ptr<PooledInstance>>;

}  // namespace nereid::schedule
