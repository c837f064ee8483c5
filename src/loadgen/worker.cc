// SPDX-License-Identifier: Apache-2.0
#include "loadgen/worker.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace nereid::loadgen {
namespace {

using Clock = std::chrono::steady_clock;

// The longest wait, after which a signal to stop is seen, and the time between looks at timeouts.
constexpr int kMaxWaitMs = 50;
constexpr base::nanoseconds kTimeoutCheck = std::chrono::milliseconds(20);

base::nanoseconds ThreadTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + base::nanoseconds(now.tv_nsec);
}

size_t CallsOf(const LoadPlan& plan, size_t index) {
  return plan.calls / plan.threads + (index < plan.calls % plan.threads ? 1 : 0);
}

Arrivals ArrivalsOf(const SharedLoad& load, size_t index) {
  const LoadPlan& plan = load.plan;
  const double rate = std::max(plan.rate, 1e-9) / static_cast<double>(plan.threads);
  // Threads with a constant rate take turns.
  const base::nanoseconds offset(static_cast<int64_t>(1e9 / rate * static_cast<double>(index) /
                                                      static_cast<double>(plan.threads)));
  return {plan.distribution, rate, load.begin + (plan.rate > 0 ? offset : base::nanoseconds(0)),
          plan.seed + index};
}

}  // namespace

Worker::Worker(SharedLoad& load, size_t index)
    : load_(load),
      recorder_(load.from, load.to, load.plan.interval),
      arrivals_(ArrivalsOf(load, index)),
      calls_(CallsOf(load.plan, index)),
      next_request_(index % load.requests.size()) {
  const auto make = load.target.protocol == Protocol::kHttp ? MakeHttpClient : MakeGrpcClient;
  client_ = make(
      load.target, calls_.size(), poller_,
      [this](size_t call, Ending ending, std::string_view text) { Ended(call, ending, text); });
}

void Worker::Run() {
  const auto began = Clock::now();
  const base::nanoseconds cpu_began = ThreadTime();
  for (size_t call = calls_.size(); call > 0; --call) {
    if (is_open()) {
      idle_.push_back(call - 1);
    } else {
      Continue(call - 1, began);
    }
  }
  while (true) {
    const auto now = Clock::now();
    Tick(now);
    if (IsDone(now)) break;
    client_->Flush();
    if (is_open() && !is_ending_) poller_.WakeAt(arrivals_.next());
    poller_.Wait(kMaxWaitMs,
                 [this](void* user, uint32_t events) { client_->Handle(user, events); });
  }
  const auto ended = Clock::now();
  GiveUp(ended);
  busy_ = static_cast<double>((ThreadTime() - cpu_began).count()) /
          static_cast<double>(std::max<int64_t>((ended - began).count(), 1));
}

void Worker::Tick(base::TimePoint now) {
  // Before the end is seen: a thread that was kept waiting must not forget what was due meanwhile.
  if (is_open() && !is_ending_) StartDue(std::min(now, load_.to - base::nanoseconds(1)));
  if (now >= load_.to || load_.stop.stop_requested() || load_.is_over) is_ending_ = true;
  if (now - last_check_ >= kTimeoutCheck) {
    last_check_ = now;
    CheckTimeouts(now);
  }
}

bool Worker::IsDone(base::TimePoint now) const {
  if (!is_ending_) return false;
  if (load_.stop.stop_requested() || load_.is_over) return true;
  // A request in flight has the time that it would have had anyway; what still waits to be sent
  // after that is not sent any more.
  return (busy_calls_ == 0 && waiting_.empty()) || now >= load_.to + load_.plan.timeout;
}

void Worker::GiveUp(base::TimePoint now) {
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i].is_busy) continue;
    client_->Abandon(i);
    if (is_open()) recorder_.Unfinished(calls_[i].due, now);
  }
  client_->Flush();
  for (const base::TimePoint due : waiting_) recorder_.Unfinished(due, now);
}

bool Worker::TakeTurn(base::TimePoint now) {
  if (is_ending_) return false;
  if (load_.plan.requests == 0 || now < load_.from) return true;
  if (load_.started.fetch_add(1) < load_.plan.requests) return true;
  is_ending_ = true;
  return false;
}

void Worker::StartDue(base::TimePoint now) {
  for (; arrivals_.next() <= now; arrivals_.Advance()) {
    if (!TakeTurn(arrivals_.next())) return;
    if (idle_.empty()) {
      waiting_.push_back(arrivals_.next());
    } else {
      const size_t call = idle_.back();
      idle_.pop_back();
      Start(call, arrivals_.next());
    }
  }
}

void Worker::Start(size_t call, base::TimePoint due) {
  const std::string& request = load_.requests[next_request_];
  if (++next_request_ == load_.requests.size()) next_request_ = 0;
  calls_[call] = {due, is_open() ? Clock::now() : due, true};
  ++busy_calls_;
  const base::Status begun = client_->Begin(call, request);
  if (begun.ok()) return;
  // There is no way to go on, and a loop of failures would only keep the machine busy.
  calls_[call].is_busy = false;
  --busy_calls_;
  status_ = begun;
  is_ending_ = true;
  load_.is_over = true;
}

void Worker::Ended(size_t call, Ending ending, std::string_view text) {
  const auto now = Clock::now();
  const base::TimePoint due = calls_[call].due;
  calls_[call].is_busy = false;
  --busy_calls_;
  // Where the number of requests is limited, those of the warm-up count in no way, even if they end
  // after it.
  const bool is_counted = load_.plan.requests == 0 || due >= load_.from;
  if (is_counted && now >= load_.from) ++load_.ended;
  if (!is_counted && ending != Ending::kNoServer) return Continue(call, now);
  if (ending == Ending::kSuccess) {
    recorder_.Succeeded(due, now, is_open());
  } else {
    recorder_.Failed(due, now, is_open(), text);
  }
  if (ending == Ending::kNoServer) {
    status_ = base::UnavailableError(std::string(text));
    load_.is_over = true;
    is_ending_ = true;
    return;
  }
  Continue(call, now);
}

void Worker::Continue(size_t call, base::TimePoint now) {
  if (!is_open()) {
    if (TakeTurn(now)) Start(call, now);
  } else if (waiting_.empty()) {
    idle_.push_back(call);
  } else {
    const base::TimePoint due = waiting_.front();
    waiting_.pop_front();
    Start(call, due);
  }
}

void Worker::CheckTimeouts(base::TimePoint now) {
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i].is_busy || now - calls_[i].sent < load_.plan.timeout) continue;
    client_->Abandon(i);
    Ended(i, Ending::kLost,
          fmt::format("no response within {:g} s",
                      std::chrono::duration<double>(load_.plan.timeout).count()));
  }
}

}  // namespace nereid::loadgen
