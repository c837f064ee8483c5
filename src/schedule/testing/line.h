// SPDX-License-Identifier: Apache-2.0
// The simplest source of work, for tests of the code that executes it.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "schedule/instance_pool.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

// One request at a time, in order of arrival. Confined to the lock of its pool.
class Line final : public WorkSource {
 public:
  void Push(core::RequestPtr request) { waiting_.push_back(std::move(request)); }

  bool HasWaiting() const override { return !waiting_.empty(); }
  BatchDecision Decide(size_t /*instance*/, uint64_t /*now_ns*/) override {
    return {.request_count = waiting_.empty() ? 0u : 1u, .look_again_at_ns = {}};
  }
  void Take(size_t /*instance*/, const BatchDecision& /*decision*/,
            std::vector<core::RequestPtr>& batch) override {
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }

 private:
  std::deque<core::RequestPtr> waiting_;
};

// Pushes a request into a source as a scheduler does.
template <typename Source>
void Enqueue(InstancePool& pool, Source& source, core::RequestPtr request) {
  InstancePool::Arrival arrival(*request);
  {
    pool.LockFor(arrival);
    base::MutexLock lock(pool.mutex(), std::adopt_lock);
    source.Push(std::move(request));
    pool.Announce(arrival, base::NowNs());
  }
  pool.Finish(arrival);
}

}  // namespace nereid::schedule
