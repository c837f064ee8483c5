// SPDX-License-Identifier: Apache-2.0
// The event loops. A ReactorPool owns a few threads, each running one Reactor; a connection lives on
// one reactor for good, and everything that touches its socket's read side runs there. Other threads
// reach a reactor by Post. Code above this module meets reactors only as "where am I" (Current) and
// "run this over there" (Post, RunAfterRound, Timer).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "base/unique_function.h"

namespace boost::asio {
class io_context;
}

namespace nereid::net {

// Work for a reactor that brings its own storage, so that queueing it allocates nothing. The owner
// keeps it alive until Run is called and must not queue it again before that.
class Task {
 public:
  virtual void Run() = 0;

  Task* next_in_queue = nullptr;  // the reactor's, while queued

 protected:
  ~Task() = default;
};

// One event loop on one thread. Post and the plain getters are thread-safe; the rest is confined to
// the reactor's own thread.
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
  size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  void AddConnection() { connections_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveConnection() { connections_.fetch_sub(1, std::memory_order_relaxed); }

  // Counts up about once a second while the loop turns; a watchdog compares two readings.
  uint64_t heartbeats() const { return heartbeats_.load(std::memory_order_relaxed); }

  // For this module's own files.
  boost::asio::io_context& context() { return *context_; }

  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

 private:
  friend class ReactorPool;
  struct Loop;
  explicit Reactor(unsigned index);
  void Run();
  void Stop();
  void ScheduleDrain();
  void DrainInbox();
  void DrainRound();
  void Beat();

  const unsigned index_;
  const std::unique_ptr<Loop> loop_;
  boost::asio::io_context* const context_;  // inside loop_
  std::atomic<size_t> connections_{0};
  std::atomic<uint64_t> heartbeats_{0};
  std::atomic<Task*> inbox_{nullptr};  // newest first; a drain is posted when it was empty
  Task* round_head_ = nullptr;         // oldest first
  Task* round_tail_ = nullptr;
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

  // Replaces an earlier deadline that has not come yet.
  void Start(std::chrono::nanoseconds from_now, base::UniqueFunction<void()> fn);
  void Cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the callback that may already be queued
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

 private:
  std::vector<std::unique_ptr<Reactor>> reactors_;
};

}  // namespace nereid::net
