// SPDX-License-Identifier: Apache-2.0
// The context that schedulers share, for tests.
#pragma once

#include "base/thread_reaper.h"
#include "base/timers.h"
#include "schedule/instance_pool_options.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// A complete context. Outlives the schedulers of the test.
struct TestContext {
  base::Timers timers;
  base::ThreadReaper reaper;
  RateLimiter rate_limiter{{}, timers};
  base::Watchdog* watchdog = nullptr;  // outlives the schedulers, too

  SchedulerContext Get() {
    return {.timers = timers, .reaper = reaper, .rate_limiter = rate_limiter, .watchdog = watchdog};
  }
};

}  // namespace nereid::schedule
