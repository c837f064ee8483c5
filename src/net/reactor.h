// SPDX-License-Identifier: Apache-2.0
// The event loops. A ReactorPool owns a few threads, each running one Reactor; a connection lives
// on one reactor for good, and everything that touches its socket's read side runs there. Other
// threads reach a reactor by Post. Code above this module meets reactors only as "where am I"
// (Current) and "run this over there" (Post, RunAfterRound, Timer).
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

namespace nereid::net {

// Work for a reactor that brings its own storage, so that queueing it allocates nothing. The owner
// keeps it alive until Run is called and must not queue it again before that.
class Task : public base::Queueable {
 public:
  virtual void Run() = 0;

 protected:
  ~Task() = default;
};

// Something with a descriptor that a reactor watches.
class Watched {
 public:
  // What has changed since the last call (epoll's bits, edge-triggered). Never after the pass of
  // the loop in which Unwatch was called, but perhaps once more in that one.
  virtual void OnEvents(uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

class Timer;

// One event loop on one thread: epoll, and nothing between it and those who are watched. Post and
// the plain getters are thread-safe; the rest is confined to the reactor's own thread.
class Reactor {
 public:
  // The reactor whose thread this is, null on every other thread.
  static Reactor* Current();

  unsigned index() const { return index_; }
  bool IsCurrent() const { return Current() == this; }

  // Runs `fn` on this reactor, in the order of the calls of one thread. From any thread; what is
  // posted after the pool stopped is destroyed unrun.
  void Post(base::UniqueFunction<void()> fn);
  // The same without allocating.
  void Post(Task& task);

  // Runs `fn` once, after the events that are ready now have been handled, so that requests which
  // arrived together can be looked at together. Only from this reactor's thread.
  void RunAfterRound(base::UniqueFunction<void()> fn);
  // The same without allocating.
  void RunAfterRound(Task& task);

  // Connections that live here; the listener gives a new one to the reactor with the fewest.
  size_t connections() const { return connections_; }
  void AddConnection() { ++connections_; }
  void RemoveConnection() { --connections_; }

  // -- For this module's own files. --

  // False when the system refuses. `watched` lives until the pass of the loop after Unwatch.
  bool Watch(int fd, Watched& watched);
  void Unwatch(int fd);
  // Runs `task` once the events of this pass have been handled.
  void RunSoon(Task& task);
  // Whether this pass has more events to handle. Only from this reactor's thread.
  bool HasMoreEvents() const { return events_left_ > 0; }
  // Whether more answers may be made soon, so that a small one had better wait for RunTogether.
  bool ExpectsAnswers() const { return HasMoreEvents() || is_in_round_; }
  // Runs `task` among others of its kind: after the events of this pass, or once several wait, or
  // after the work of the round. Small answers that leave one after another wake a client which
  // shares the machine once, not each time; and a batch of requests takes no longer for its
  // answers.
  void RunTogether(Task& task);

  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

 private:
  friend class ReactorPool;
  friend class Timer;

  explicit Reactor(unsigned index);
  void Run();
  void HandleEvents(int timeout_ms);
  void RunTogetherNow();
  void Stop();
  void Wake();

  // Runs what is due and returns when to look again, in milliseconds.
  int RunTimers();
  void AddTimer(Timer& timer);
  void RemoveTimer(Timer& timer);
  // Puts the timer at `index` where it belongs in the heap.
  void SiftTimer(size_t index);

  const unsigned index_;
  const base::UniqueFd epoll_;
  const base::UniqueFd wake_;  // an eventfd; only ever written, because it is edge-triggered
  std::atomic<size_t> connections_{0};
  base::Inbox<Task> inbox_;  // what was posted; rests while the loop sleeps, or is about to
  std::atomic<bool> is_stopping_{false};
  std::atomic<uint32_t> posters_{0};  // other threads inside Post
  base::Queue<Task> soon_;
  base::Queue<Task> together_;
  int together_count_ = 0;
  int events_left_ = 0;
  bool is_in_round_ = false;
  base::Queue<Task> round_;
  std::vector<Timer*> timers_;  // a heap, the earliest first
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

  // Replaces an earlier deadline that has not come yet. May be late by a millisecond.
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

// Thread-safe. Destroying it stops the loops and joins their threads; everything that lives on the
// reactors (listeners, servers) must be gone by then.
class ReactorPool {
 public:
  // 0 asks for the default: a quarter of the CPUs, at least 2 where there are 2, at most 16.
  explicit ReactorPool(unsigned threads = 0);
  ~ReactorPool();
  ReactorPool(const ReactorPool&) = delete;
  ReactorPool& operator=(const ReactorPool&) = delete;

  size_t size() const { return reactors_.size(); }
  Reactor& reactor(size_t i) { return *reactors_[i]; }
  Reactor& LeastLoaded();
  // Threads for what would keep a reactor from its other connections for long: inflating, parsing
  // and rendering much. What is posted there is run before the pool ends.
  base::TaskPool& workers() { return workers_; }

 private:
  std::vector<std::unique_ptr<Reactor>> reactors_;
  base::TaskPool workers_;
};

}  // namespace nereid::net
