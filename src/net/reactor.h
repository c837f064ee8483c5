// SPDX-License-Identifier: Apache-2.0
// The event loops. A ReactorPool owns a few threads, each running one Reactor; a connection stays
// on one reactor for its whole life, and everything that touches its socket's read side runs there.
// Other threads reach a reactor by Post. Code above this module uses reactors only to find the
// current one (Current) and to run tasks on one (Post, RunAfterRound, Timer).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/inbox.h"
#include "base/task_pool.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "base/unique_function.h"
#include "base/watchdog.h"

namespace nereid::net {

// Work for a reactor that has its own storage, so that queueing it allocates nothing. The owner
// keeps it alive until Run is called and must not queue it again before that.
class Task : public base::Queueable {
 public:
  virtual void Run() = 0;

 protected:
  ~Task() = default;
};

// An object with a descriptor that a reactor watches.
class Watched {
 public:
  // Reports what has changed since the last call (epoll's bits, edge-triggered). Not called after
  // the pass of the loop in which Unwatch was called, but perhaps once more in that one.
  virtual void OnEvents(uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

class Timer;

// One event loop on one thread: epoll with no layer above it. Post and the plain getters are
// thread-safe; the rest is confined to the reactor's own thread.
class Reactor {
 public:
  // Returns the reactor of the current thread; null on every other thread.
  static Reactor* Current();

  unsigned index() const { return index_; }
  bool IsCurrent() const { return Current() == this; }

  // Runs `fn` on this reactor. Calls of one thread keep their order. From any thread. A function
  // that is posted after the pool has stopped never runs, and its memory is not freed.
  void Post(base::UniqueFunction<void()> fn);
  // Like Post above, without allocating.
  void Post(Task& task);

  // Runs `fn` once, after the events that are ready now have been handled, so that requests which
  // arrived together can be processed together. Only from this reactor's thread.
  void RunAfterRound(base::UniqueFunction<void()> fn);
  // Like RunAfterRound above, without allocating.
  void RunAfterRound(Task& task);

  // The number of connections on this reactor; the listener gives a new one to the reactor with the
  // fewest.
  size_t connections() const { return connections_; }
  void AddConnection() { ++connections_; }
  void RemoveConnection() { --connections_; }

  // -- For this module's own files. --

  // Returns false if the system refuses. `watched` must live until the pass of the loop after
  // Unwatch.
  bool Watch(int fd, Watched& watched);
  void Unwatch(int fd);
  // Runs `task` once the events of this pass have been handled.
  void RunSoon(Task& task);
  // Whether this pass has more events to handle. Only from this reactor's thread.
  bool HasMoreEvents() const { return events_left_ > 0; }
  // Whether more replies may follow soon, so that a small one should wait in RunTogether.
  bool ExpectsResponses() const { return HasMoreEvents() || is_in_round_; }
  // Runs `task` together with others of its kind: after the events of this pass, or once several
  // wait, or after the work of the round. Small replies that are sent one after another wake a
  // client on the same machine once instead of each time, and a batch of requests gets its replies
  // as quickly.
  void RunTogether(Task& task);

  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

 private:
  friend class ReactorPool;
  friend class Timer;

  Reactor(unsigned index, base::Watchdog* watchdog);
  void Run();
  void HandleEvents(int timeout_ms);
  void RunTogetherNow();
  void Stop();
  void Wake();

  // Runs due timers and returns the milliseconds until the next one.
  int RunTimers();
  void AddTimer(Timer& timer);
  void RemoveTimer(Timer& timer);
  // Moves the timer at `index` to its place in the heap.
  void SiftTimer(size_t index);

  const unsigned index_;
  const base::UniqueFd epoll_;
  const base::UniqueFd wake_;  // an eventfd; only ever written, because it is edge-triggered
  std::atomic<size_t> connections_{0};
  base::Inbox<Task> inbox_;  // posted tasks; rests while the loop sleeps, or is about to
  std::atomic<bool> is_stopping_{false};
  std::atomic<uint32_t> posters_{0};  // other threads inside Post
  base::Queue<Task> soon_;
  base::Queue<Task> together_;
  int together_count_ = 0;
  int events_left_ = 0;
  bool is_in_round_ = false;
  base::Queue<Task> round_;
  std::vector<Timer*> timers_;  // a heap, the earliest first
  base::Heartbeat heartbeat_;   // rests while the loop sleeps
  base::Watchdog::Watch watch_;
  base::Thread thread_;
};

// Calls back once at a deadline unless cancelled first. Confined to the thread of its reactor,
// including construction and destruction; destroying it cancels it.
class Timer {
 public:
  explicit Timer(Reactor& reactor);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces an earlier deadline that has not been reached. May be late by a millisecond.
  void Start(std::chrono::nanoseconds from_now, base::UniqueFunction<void()> fn);
  void Cancel();

 private:
  friend class Reactor;
  static constexpr size_t kNotQueued = SIZE_MAX;

  Reactor& reactor_;
  base::UniqueFunction<void()> fn_;
  uint64_t due_ns_ = 0;
  size_t index_ = kNotQueued;  // in the reactor's heap
};

// Thread-safe. Destroying it stops the loops and joins their threads; everything on the reactors
// (listeners, servers) must be destroyed before.
class ReactorPool {
 public:
  // 0 means the default: a quarter of the CPUs, at least 2 if there are 2, at most 16.
  // `watchdog`, if any, watches the threads, and outlives them.
  explicit ReactorPool(unsigned threads = 0, base::Watchdog* watchdog = nullptr);
  ~ReactorPool();
  ReactorPool(const ReactorPool&) = delete;
  ReactorPool& operator=(const ReactorPool&) = delete;

  size_t size() const { return reactors_.size(); }
  Reactor& reactor(size_t i) { return *reactors_[i]; }
  Reactor& LeastLoaded();
  // Threads for work that would delay a reactor's other connections: inflating, parsing and
  // rendering large data. All posted work runs before the pool is destroyed.
  base::TaskPool& workers() { return workers_; }

 private:
  std::vector<std::unique_ptr<Reactor>> reactors_;
  base::TaskPool workers_;
};

}  // namespace nereid::net
