// SPDX-License-Identifier: Apache-2.0
// The own thread of one instance. It is started when there is work for it, sleeps while there is
// none, and ends when nobody has woken it for a while. An instance that has to be executed by one
// thread has it from the start, and is initialised, warmed up and finalised by it.
//
// The lock that guards all this is that of the instance's pool. It is passed to each call, as to a
// CondVar.
#pragma once

#include <chrono>
#include <functional>
#include <future>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "core/scheduler.h"

namespace nereid::schedule {

// Thread-safe, as far as the lock is always the same one.
class InstanceThread {
 public:
  using WarmUp = std::function<base::Status(core::Instance&)>;

  // `instance` outlives the thread. `main` is what the thread does: it executes work until there
  // will be none, and calls SetEnded or Leave before it returns.
  InstanceThread(core::Instance& instance, std::function<void()> main)
      : instance_(instance), main_(std::move(main)) {}
  // REQUIRES: the thread has been told to end.
  ~InstanceThread() = default;
  InstanceThread(const InstanceThread&) = delete;
  InstanceThread& operator=(const InstanceThread&) = delete;

  // -- An instance that has to be initialised by its thread. --
  // Starts the thread, which initialises the instance and warms it up (with `warm_up`, unless that
  // is empty), and returns how that will have gone. Where it went well the thread then waits for
  // Admit or Drop. REQUIRES: not called before.
  std::future<base::Status> Start(base::Mutex& mutex, const WarmUp& warm_up) NEREID_EXCLUDES(mutex);
  // The thread may begin its work.
  void Admit(base::Mutex& mutex) NEREID_REQUIRES(mutex) { Decide(mutex, Admission::kAdmitted); }
  // The thread is not needed: it finalises the instance and ends.
  void Drop(base::Mutex& mutex) NEREID_REQUIRES(mutex) { Decide(mutex, Admission::kDropped); }

  // -- For the pool. --
  // Wakes the thread if it sleeps.
  void Wake(base::Mutex& mutex) NEREID_REQUIRES(mutex);
  // The same, and starts a thread where there is none. REQUIRES: the instance needs no
  // initialisation by it, or is initialised.
  void WakeOrStart(base::Mutex& mutex) NEREID_REQUIRES(mutex);
  bool exists(const base::Mutex& mutex) const NEREID_REQUIRES(mutex) {
    return state_.Under(mutex).exists;
  }
  // Whether the thread will look for work without being woken.
  bool is_on_its_way(const base::Mutex& mutex) const NEREID_REQUIRES(mutex);
  // When the thread will look for work again though nobody wakes it; 0: never.
  uint64_t looks_again_at_ns(const base::Mutex& mutex) const NEREID_REQUIRES(mutex) {
    return state_.Under(mutex).looks_again_at_ns;
  }
  // Waits for the end of the thread. REQUIRES: the thread has been told to end, or has ended, and
  // no other is started.
  void Join() { thread_.Join(); }

  // -- For the thread itself. --
  // Sleeps until it is woken, or until `look_again_at_ns` (0: never). May return early.
  void Wait(base::Mutex& mutex, uint64_t look_again_at_ns) NEREID_REQUIRES(mutex);
  // Sleeps until it is woken. False when that did not happen for `lifetime`.
  bool WaitFor(base::Mutex& mutex, std::chrono::nanoseconds lifetime) NEREID_REQUIRES(mutex);
  // The thread is about to end, and is joined by Join.
  void SetEnded(base::Mutex& mutex) NEREID_REQUIRES(mutex) { state_.Under(mutex).exists = false; }
  // The thread is about to end, and its handle goes to the caller, so that another may be started
  // at once.
  base::Thread Leave(base::Mutex& mutex) NEREID_REQUIRES(mutex);

 private:
  enum class Admission { kUndecided, kAdmitted, kDropped };
  // What the lock of the pool guards.
  struct State {
    Admission admission = Admission::kUndecided;
    bool exists = false;
    bool is_asleep = false;
    bool is_woken = false;  // while it still sleeps
    uint64_t looks_again_at_ns = 0;
  };

  void Decide(base::Mutex& mutex, Admission admission) NEREID_REQUIRES(mutex);
  // What a thread does that initialises its instance. `warm_up` may be empty.
  void RunFromInitialisation(base::Mutex& mutex, const WarmUp& warm_up,
                             std::promise<base::Status>& started) NEREID_EXCLUDES(mutex);
  bool WaitForAdmission(base::Mutex& mutex) NEREID_EXCLUDES(mutex);
  // False when `deadline` (null: none) passed and nobody had woken the thread.
  bool WaitForWake(base::Mutex& mutex, const base::TimePoint* deadline) NEREID_REQUIRES(mutex);

  core::Instance& instance_;
  const std::function<void()> main_;
  base::CondVar wake_;
  base::Guarded<State> state_;
  base::Thread thread_;  // set while there is none; joined by one thread at a time
};

}  // namespace nereid::schedule
