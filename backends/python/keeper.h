// SPDX-License-Identifier: Apache-2.0
// Keeps one body alive: makes and initializes it, replaces it when it dies, and ends permanently
// when it is stopped, in any state. A body is the process of an instance with all its state; this
// file knows nothing of processes, so that tests can try every order of events.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "backend_kit/error.h"
#include "backend_kit/handles.h"
#include "backend_kit/mutex.h"
#include "python_backend/life.h"

namespace nereid::python {

// How long requests wait for a new body, and when a failed start is retried.
struct KeeperOptions {
  std::string name;                          // of the instance, in messages
  std::string what = "Stub process";         // what messages call its process
  std::chrono::milliseconds patience{5000};  // of a request that arrives while a body starts
  // The first start that replaces a dead body has no pause before it. The pauses between failed
  // starts double from the shortest to the longest.
  std::chrono::milliseconds shortest_pause{100};
  std::chrono::milliseconds longest_pause{30000};
  std::chrono::seconds long_life{60};        // a body that lived this long was no failed attempt
  std::function<void()> on_death = nullptr;  // told of each body that died unasked
};

// `Body` has these functions, which any thread may call:
//   backend::Error Initialize();            waits until it is ready; fails soon after Kill
//   void Kill(const std::string& why);      does not wait
//   void Bury();                            REQUIRES: it is dead or killed. Waits for its end, and
//                                           fails all requests and calls that it still has
//   bool is_alive() const;
//   std::string DeathMessage() const;       REQUIRES: !is_alive()
//   bool has_served() const;                it did some work, so its start was no failure
// Thread-safe, except that Start must be called first.
template <typename Body>
class Keeper {
 public:
  using BodyPtr = std::shared_ptr<Body>;
  // Makes a body that is not initialized.
  using Make = std::function<backend::Result<BodyPtr>()>;

  Keeper(KeeperOptions options, Make make) : options_(std::move(options)), make_(std::move(make)) {}
  ~Keeper() {
    const BodyPtr left = Stop();
    if (left == nullptr) return;
    left->Kill("its instance is gone");
    left->Bury();
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Makes the first body on the calling thread. After success, dead bodies are replaced.
  backend::Error Start() {
    NEREID_KIT_TRY(Attempt().Release());
    const backend::MutexLock joining(join_mutex_);
    const backend::MutexLock lock(mutex_);
    if (state_ != LifeState::kStopping) thread_ = std::thread([this] { Keep(); });
    return {};
  }

  // Returns the body if it is ready, else null.
  BodyPtr Ready() {
    const backend::MutexLock lock(mutex_);
    const bool is_ready =
        state_ == LifeState::kReady && current_ != nullptr && current_->is_alive();
    return is_ready ? current_ : nullptr;
  }

  // Returns the body like Ready, but waits for one that is starting. If there is none, returns the
  // reason.
  backend::Result<BodyPtr> Acquire() {
    const Clock::time_point deadline = Clock::now() + options_.patience;
    const backend::MutexLock lock(mutex_);
    while (!IsSettled() && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (state_ == LifeState::kReady && current_ != nullptr) return current_;
    if (state_ == LifeState::kStopping) {
      return backend::Error::Unavailable(backend::StrCat(
          options_.what, " '", options_.name, "' is not healthy: its model is unloaded"));
    }
    return backend::Error::Internal(
        failure_.empty() ? backend::StrCat(options_.what, " '", options_.name, "' is not healthy.")
                         : failure_);
  }

  // Called when a body has died.
  void NoticeDeath() {
    const backend::MutexLock lock(mutex_);
    changed_.NotifyAll();
  }

  // Stops permanently. Kills a body that is starting, because it is no longer needed. Returns the
  // body that executed, alive or dead; null if there is none, or if it was returned before.
  BodyPtr Stop() {
    BodyPtr starting;
    {
      const backend::MutexLock lock(mutex_);
      Apply(LifeEvent::kStopped);
      starting = starting_;
    }
    if (starting != nullptr) starting->Kill("its model is unloaded");
    const backend::MutexLock joining(join_mutex_);
    if (thread_.joinable()) thread_.join();
    const backend::MutexLock lock(mutex_);
    return std::exchange(current_, nullptr);
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Returns whether a request need not wait for the outcome of a start or a death.
  bool IsSettled() const NEREID_KIT_REQUIRES(mutex_) {
    const bool is_there = current_ != nullptr && current_->is_alive();
    return state_ == LifeState::kReady ? is_there : state_ != LifeState::kStarting;
  }

  void Apply(LifeEvent event) NEREID_KIT_REQUIRES(mutex_) {
    state_ = Next(state_, event);
    changed_.NotifyAll();
  }

  // Performs one start. Success means that the body is in place, or that none is needed any more.
  backend::Error Attempt() {
    backend::Result<BodyPtr> made = make_();
    if (!made.ok()) return Failed(made.TakeError());
    const BodyPtr body = std::move(made).value();
    bool is_wanted = false;
    {
      const backend::MutexLock lock(mutex_);
      is_wanted = state_ != LifeState::kStopping;
      if (is_wanted) starting_ = body;
    }
    backend::Error error = is_wanted ? body->Initialize() : backend::Error();
    {
      const backend::MutexLock lock(mutex_);
      starting_ = nullptr;
      if (error.ok() && is_wanted) {
        Apply(LifeEvent::kStarted);
        is_wanted = state_ == LifeState::kReady;
        if (is_wanted) current_ = body;
      }
    }
    if (error.ok() && is_wanted) return {};
    body->Kill("its model is unloaded");
    body->Bury();
    return error.ok() ? backend::Error() : Failed(std::move(error));
  }

  backend::Error Failed(backend::Error error) {
    const backend::MutexLock lock(mutex_);
    failure_ = error.message();
    Apply(LifeEvent::kStartFailed);
    return error;
  }

  // Waits until the body that executes has died, and takes it. Returns null on Stop.
  BodyPtr AwaitDeath() {
    const backend::MutexLock lock(mutex_);
    while (state_ != LifeState::kStopping && current_ != nullptr && current_->is_alive()) {
      changed_.Wait(mutex_);
    }
    if (state_ == LifeState::kStopping || current_ == nullptr) return nullptr;
    failure_ = current_->DeathMessage();
    Apply(LifeEvent::kDied);
    return std::exchange(current_, nullptr);
  }

  // Returns false on Stop.
  bool Rest(std::chrono::milliseconds pause) {
    const Clock::time_point end = Clock::now() + pause;
    const backend::MutexLock lock(mutex_);
    while (state_ != LifeState::kStopping && changed_.WaitUntil(mutex_, end)) {
    }
    return state_ != LifeState::kStopping;
  }

  void Keep() {
    pthread_setname_np(pthread_self(), "python-keeper");
    std::chrono::milliseconds pause{0};
    auto started = Clock::now();
    while (const BodyPtr dead = AwaitDeath()) {
      backend::LogWarning(backend::StrCat(dead->DeathMessage(), "; starting another"));
      if (options_.on_death) options_.on_death();
      dead->Bury();
      if (Clock::now() - started > options_.long_life || dead->has_served()) {
        pause = std::chrono::milliseconds(0);
      }
      for (bool is_there = false; !is_there;) {
        if (!Rest(pause)) return;
        pause = std::clamp(pause * 2, options_.shortest_pause, options_.longest_pause);
        started = Clock::now();
        const backend::Error error = Attempt();
        is_there = error.ok();
        if (!is_there) LogFailure(error);
      }
    }
  }

  void LogFailure(const backend::Error& error) {
    {
      const backend::MutexLock lock(mutex_);
      if (state_ == LifeState::kStopping) return;  // Stop made the start fail
    }
    backend::Log(TRITONSERVER_LOG_ERROR, backend::StrCat("failed to restart model instance '",
                                                         options_.name, "': ", error.message()));
  }

  const KeeperOptions options_;
  const Make make_;
  backend::Mutex join_mutex_;  // acquired before mutex_
  backend::Mutex mutex_;
  backend::CondVar changed_;
  LifeState state_ NEREID_KIT_GUARDED_BY(mutex_) = LifeState::kStarting;
  BodyPtr starting_ NEREID_KIT_GUARDED_BY(mutex_);     // during Initialize
  BodyPtr current_ NEREID_KIT_GUARDED_BY(mutex_);      // executes, or has just died
  std::string failure_ NEREID_KIT_GUARDED_BY(mutex_);  // why there is no body
  std::thread thread_ NEREID_KIT_GUARDED_BY(join_mutex_);
};

}  // namespace nereid::python
