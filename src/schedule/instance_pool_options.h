// SPDX-License-Identifier: Apache-2.0
// The arguments of every scheduler that has instances.
#pragma once

#include <chrono>
#include <functional>

#include "base/status.h"
#include "base/thread_reaper.h"
#include "base/timers.h"
#include "base/watchdog.h"
#include "core/scheduler.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// How a pool uses its instances.
struct InstancePoolOptions {
  // An instance whose executions take longer than this on average never runs on a reactor; 0: none.
  // A batch may take several times as long, once for each of its requests up to eight.
  std::chrono::nanoseconds inline_budget = std::chrono::microseconds(50);
  // How long a reactor waits for others that execute what is brief.
  std::chrono::nanoseconds arrival_patience = std::chrono::microseconds(200);
  // Whether requests that arrive in one round are all queued before any runs. Set by the scheduler.
  bool collects_rounds = false;
  // Whether cancelled requests are completed instead of executed. False if their place in a batch
  // matters. Set by the scheduler.
  bool drops_cancelled = true;
  // Whether instances with their own threads initialise and warm up at the same time.
  bool starts_in_parallel = false;
  // Called for each instance on the thread that executes it, before it takes any work. May be
  // empty.
  std::function<base::Status(core::Instance&)> warm_up = {};
  // How long the thread of an instance that may run on any thread waits for work before it ends and
  // frees its resources: a server of a thousand models needs few of them at a time.
  std::chrono::nanoseconds idle_thread_lifetime = std::chrono::milliseconds(500);
};

// Shared by the schedulers of all models. Everything in it outlives them.
struct SchedulerContext {
  base::Timers& timers;
  base::ThreadReaper& reaper;          // joins threads of instances that ended for lack of work
  RateLimiter& rate_limiter;           // for the instances that have claims
  base::Watchdog* watchdog = nullptr;  // over the threads of instances; null: none
};

}  // namespace nereid::schedule
