// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_thread.h"

#include <memory>
#include <utility>

#include "schedule/start_thread.h"

namespace nereid::schedule {

std::future<base::Status> InstanceThread::Start(base::Mutex& mutex, const WarmUp& warm_up) {
  // Shared because the body of a thread can be copied.
  auto started = std::make_shared<std::promise<base::Status>>();
  std::future<base::Status> result = started->get_future();
  auto thread = StartThread(instance_.name(), [this, &mutex, warm_up, started] {
    RunFromInitialisation(mutex, warm_up, *started);
  });
  if (!thread.ok()) {
    started->set_value(thread.status());
    return result;
  }
  thread_ = std::move(thread).value();
  // Early enough: nobody asks before the instance is admitted.
  base::MutexLock lock(mutex);
  state_.Under(mutex).exists = true;
  return result;
}

void InstanceThread::RunFromInitialisation(base::Mutex& mutex, const WarmUp& warm_up,
                                           std::promise<base::Status>& started) {
  base::Status status = instance_.InitializeOnThread();
  const bool is_initialized = status.ok();
  if (status.ok() && warm_up) status = warm_up(instance_);
  const bool is_ready = status.ok();
  if (is_initialized && !is_ready) instance_.FinalizeOnThread();
  started.set_value(std::move(status));
  if (!is_ready) return;
  if (WaitForAdmission(mutex)) return main_();
  instance_.FinalizeOnThread();
}

bool InstanceThread::WaitForAdmission(base::Mutex& mutex) {
  base::MutexLock lock(mutex);
  while (state_.Under(mutex).admission == Admission::kUndecided) wake_->Wait(mutex);
  return state_.Under(mutex).admission == Admission::kAdmitted;
}

void InstanceThread::Decide(base::Mutex& mutex, Admission admission) {
  state_.Under(mutex).admission = admission;
  wake_->NotifyOne();
}

void InstanceThread::Wake(base::Mutex& mutex, PendingWake* pending) {
  State& state = state_.Under(mutex);
  if (!state.is_asleep || state.is_woken) return;
  state.is_woken = true;
  if (pending != nullptr && !pending->is_set()) return pending->Set(wake_);
  wake_->NotifyOne();
}

bool InstanceThread::WakeOrStart(base::Mutex& mutex, PendingWake* pending) {
  State& state = state_.Under(mutex);
  if (state.exists) {
    Wake(mutex, pending);
    return true;
  }
  thread_.Join();  // a thread that has ended
  auto thread = StartThread(instance_.name(), main_);
  if (!thread.ok()) [[unlikely]]
    return false;
  thread_ = std::move(thread).value();
  state.exists = true;
  return true;
}

bool InstanceThread::is_on_its_way(const base::Mutex& mutex) const {
  const State& state = state_.Under(mutex);
  return state.exists && (!state.is_asleep || state.is_woken);
}

bool InstanceThread::WaitForWake(base::Mutex& mutex, const base::TimePoint* deadline) {
  State& state = state_.Under(mutex);
  state.is_asleep = true;
  bool is_in_time = true;
  if (deadline != nullptr) {
    is_in_time = wake_->WaitUntil(mutex, *deadline);
  } else {
    wake_->Wait(mutex);
  }
  const bool is_woken = is_in_time || state.is_woken;
  state.is_asleep = false;
  state.is_woken = false;
  return is_woken;
}

void InstanceThread::Wait(base::Mutex& mutex, uint64_t look_again_at_ns) {
  State& state = state_.Under(mutex);
  state.looks_again_at_ns = look_again_at_ns;
  const base::TimePoint deadline(base::nanoseconds(static_cast<int64_t>(look_again_at_ns)));
  WaitForWake(mutex, look_again_at_ns == 0 ? nullptr : &deadline);
  state.looks_again_at_ns = 0;
}

bool InstanceThread::WaitFor(base::Mutex& mutex, std::chrono::nanoseconds lifetime) {
  const base::TimePoint deadline = std::chrono::steady_clock::now() + lifetime;
  return WaitForWake(mutex, &deadline);
}

base::Thread InstanceThread::Leave(base::Mutex& mutex) {
  SetEnded(mutex);
  return std::move(thread_);
}

}  // namespace nereid::schedule
