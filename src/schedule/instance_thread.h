// SPDX-License-Identifier: Apache-2.0
// The own thread of one instance. It is started when there is work for it, sleeps while there is
// none, and ends when it has not been woken for a while. An instance that has to be executed by one
// thread has it from the start, and is initialised, warmed up and finalised by it.
//
// Everything here is guarded by the lock of the instance's pool. It is passed to each call, as to a
// CondVar.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "core/scheduler.h"
#include "schedule/wake_signal.h"

namespace nereid::schedule {

// Thread-safe, provided that the lock is always the same one.
class InstanceThread {
 public:
  using WarmUp = std::function<base::Status(core::Instance&)>;

  // `instance` outlives the thread. `main` is the thread's main function: it executes work until
  // there will be none, and calls SetEnded or Leave before it returns.
  InstanceThread(core::Instance& instance, std::function<void()> main)
      : instance_(instance), main_(std::move(main)) {}
  // REQUIRES: the thread has been told to end.
  ~InstanceThread() = default;
  InstanceThread(const InstanceThread&) = delete;
  InstanceThread& operator=(const InstanceThread&) = delete;

  // -- For an instance that has to be initialised by its thread. -- Starts the thread, which
  // initialises the instance and warms it up (with `warm_up`, unless that is empty), and returns
  // the future result, which is UNAVAILABLE if there can be no thread. After success the thread
  // waits for Admit or Drop. REQUIRES: not called before.
  std::future<base::Status> Start(base::Mutex& mutex, const WarmUp& warm_up) NEREID_EXCLUDES(mutex);
  // Lets the thread begin its work.
  void Admit(base::Mutex& mutex) NEREID_REQUIRES(mutex) { Decide(mutex, Admission::kAdmitted); }
  // Lets the thread, which is not needed, finalise the instance and end.
  void Drop(base::Mutex& mutex) NEREID_REQUIRES(mutex) { Decide(mutex, Admission::kDropped); }

  // -- For the pool. -- Wakes the thread if it sleeps. It is told by `pending` if that is given and
  // not yet set, otherwise at once; here and below.
  void Wake(base::Mutex& mutex, PendingWake* pending = nullptr) NEREID_REQUIRES(mutex);
  // Wakes the thread, or starts one if there is none. Returns false if none can be started now.
  // REQUIRES: the instance needs no initialisation by it, or is initialised.
  [[nodiscard]] bool WakeOrStart(base::Mutex& mutex, PendingWake* pending = nullptr)
      NEREID_REQUIRES(mutex);
  bool exists(const base::Mutex& mutex) const NEREID_REQUIRES(mutex) {
    return state_.Under(mutex).exists;
  }
  // Returns whether the thread will look for work without being woken.
  bool is_on_its_way(const base::Mutex& mutex) const NEREID_REQUIRES(mutex);
  // When the thread will look for work again without being woken; 0: never.
  uint64_t looks_again_at_ns(const base::Mutex& mutex) const NEREID_REQUIRES(mutex) {
    return state_.Under(mutex).looks_again_at_ns;
  }
  // Waits for the end of the thread. REQUIRES: the thread has been told to end, or has ended, and
  // no other is started.
  void Join() { thread_.Join(); }

  // -- For the thread itself. -- Sleeps until it is woken, or until `look_again_at_ns` (0: never).
  // May return early.
  void Wait(base::Mutex& mutex, uint64_t look_again_at_ns) NEREID_REQUIRES(mutex);
  // Sleeps until it is woken. Returns false if that did not happen for `lifetime`.
  bool WaitFor(base::Mutex& mutex, std::chrono::nanoseconds lifetime) NEREID_REQUIRES(mutex);
  // Called when the thread is about to end; Join then joins it.
  void SetEnded(base::Mutex& mutex) NEREID_REQUIRES(mutex) { state_.Under(mutex).exists = false; }
  // Called when the thread is about to end. Returns its handle, so that another one may be started
  // at once.
  base::Thread Leave(base::Mutex& mutex) NEREID_REQUIRES(mutex);

 private:
  enum class Admission { kUndecided, kAdmitted, kDropped };
  // Guarded by the lock of the pool.
  struct State {
    Admission admission = Admission::kUndecided;
    bool exists = false;
    bool is_asleep = false;
    bool is_woken = false;  // although it still sleeps
    uint64_t looks_again_at_ns = 0;
  };

  void Decide(base::Mutex& mutex, Admission admission) NEREID_REQUIRES(mutex);
  // The main function of a thread that initialises its instance. `warm_up` may be empty.
  void RunFromInitialisation(base::Mutex& mutex, const WarmUp& warm_up,
                             std::promise<base::Status>& started) NEREID_EXCLUDES(mutex);
  bool WaitForAdmission(base::Mutex& mutex) NEREID_EXCLUDES(mutex);
  // Returns false if `deadline` (null: none) passed and the thread had not been woken.
  bool WaitForWake(base::Mutex& mutex, const base::TimePoint* deadline) NEREID_REQUIRES(mutex);

  core::Instance& instance_;
  const std::function<void()> main_;
  const WakeSignal wake_;
  base::Guarded<State> state_;
  base::Thread thread_;  // set while there is no thread; joined by one thread at a time
};

}  // namespace nereid::schedule
