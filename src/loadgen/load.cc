// SPDX-License-Identifier: Apache-2.0
#include "loadgen/load.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/mutex.h"
#include "base/thread.h"
#include "loadgen/worker.h"

namespace nereid::loadgen {
namespace {

using Clock = std::chrono::steady_clock;

constexpr base::nanoseconds kProgressStep = std::chrono::milliseconds(100);

// How many threads still run. Thread-safe.
class Countdown {
 public:
  explicit Countdown(size_t count) : left_(count) {}

  void Ended() {
    base::MutexLock lock(mutex_);
    --left_;
    changed_.NotifyOne();
  }
  // Waits until `time`, or until no thread runs; returns whether none does.
  bool WaitUntil(base::TimePoint time) {
    base::MutexLock lock(mutex_);
    while (left_ > 0 && changed_.WaitUntil(mutex_, time)) {
    }
    return left_ == 0;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  size_t left_ NEREID_GUARDED_BY(mutex_);
};

double ShareOf(const SharedLoad& load, base::TimePoint now) {
  if (load.plan.requests != 0) {
    return static_cast<double>(load.ended) / static_cast<double>(load.plan.requests);
  }
  return static_cast<double>((now - load.begin).count()) /
         static_cast<double>(std::max<int64_t>((load.to - load.begin).count(), 1));
}

void Call(const std::function<void()>& hook) {
  if (hook) hook();
}

// Waits for the threads, and calls the hooks when it is time.
void Watch(const SharedLoad& load, Countdown& countdown, const LoadHooks& hooks) {
  bool is_measuring = false;
  bool is_measured = false;
  bool is_done = false;
  while (!is_done) {
    const auto now = Clock::now();
    if (!is_measuring && now >= load.from) {
      is_measuring = true;
      Call(hooks.on_measuring);
    }
    if (!is_measured && now >= load.to) {
      is_measured = true;
      Call(hooks.on_measured);
    }
    if (hooks.on_progress) hooks.on_progress(std::min(ShareOf(load, now), 1.0));
    base::TimePoint next = now + kProgressStep;
    if (!is_measuring) next = std::min(next, load.from);
    if (!is_measured) next = std::min(next, load.to);
    is_done = countdown.WaitUntil(next);
  }
  if (!is_measuring) Call(hooks.on_measuring);
  if (!is_measured) Call(hooks.on_measured);
}

}  // namespace

LoadResult RunLoad(const Target& target, const std::vector<std::string>& requests,
                   const LoadPlan& plan, const LoadHooks& hooks) {
  const auto begin = Clock::now();
  const auto from = begin + plan.warmup;
  const auto to =
      plan.requests != 0 ? base::TimePoint::max() - std::chrono::hours(24) : from + plan.duration;
  SharedLoad load{.target = target,
                  .requests = requests,
                  .plan = plan,
                  .begin = begin,
                  .from = from,
                  .to = to,
                  .stop = hooks.stop};
  std::deque<Worker> workers;
  for (size_t i = 0; i < plan.threads; ++i) workers.emplace_back(load, i);
  Countdown countdown(plan.threads);
  {
    std::vector<base::Thread> threads;
    for (Worker& worker : workers) {
      threads.emplace_back("load", [&worker, &countdown] {
        worker.Run();
        countdown.Ended();
      });
    }
    Watch(load, countdown, hooks);
  }
  LoadResult result{.measured = Recorder(from, to, plan.interval)};
  for (const Worker& worker : workers) {
    result.measured.Add(worker.recorder());
    result.busy = std::max(result.busy, worker.busy());
    if (result.status.ok()) result.status = worker.status();
  }
  if (result.status.ok() && hooks.stop.stop_requested()) {
    result.status = base::CancelledError("interrupted");
  }
  const auto end = plan.requests != 0 || !result.status.ok() ? result.measured.last_end() : to;
  result.seconds = std::chrono::duration<double>(end - from).count();
  return result;
}

}  // namespace nereid::loadgen
