// SPDX-License-Identifier: Apache-2.0
// A race that tests of what refers to a request without keeping it have in common.
#pragma once

#include <functional>
#include <latch>

#include "base/thread.h"
#include "core/cancel_handle.h"
#include "core/request.h"

namespace nereid::core {

// Releases `request` while one thread cancels it by `handle` and another one does `other`, and
// returns when all three are done.
inline void ReleaseWhileCancelled(RequestPtr request, CancelHandle& handle,
                                  const std::function<void()>& other) {
  std::latch start(3);
  base::Thread client("client", [&] {
    start.arrive_and_wait();
    if (const RequestRef cancelled = handle.Take()) cancelled->Cancel();
  });
  base::Thread backend("backend", [&] {
    start.arrive_and_wait();
    other();
  });
  start.arrive_and_wait();
  request.reset();
  client.Join();
  backend.Join();
}

}  // namespace nereid::core
