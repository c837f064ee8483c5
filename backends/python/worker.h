// SPDX-License-Identifier: Apache-2.0
// One worker: the process that runs a Python model for one instance. It is made of parts: the
// memory shared with it (worker_memory.h), whether it lives (vitals.h), what it has to do
// (mailboxes.h) and what it asks of the server (call_ring.h). A worker that has ended stays ended;
// another one takes its place. The owner of a worker stops it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "backend_kit/mutex.h"
#include "python_backend/call_ring.h"
#include "python_backend/mailboxes.h"
#include "python_backend/process.h"
#include "python_backend/vitals.h"
#include "python_backend/worker_memory.h"

namespace nereid::python {

// What a worker is started with.
struct WorkerOptions {
  Command command;       // the channel apart
  std::string greeting;  // JSON, told to the worker first
  std::string name;      // of the instance, in errors
  std::chrono::seconds start_timeout{30};
};

// Thread-safe, but for work(), which is for one thread at a time.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  using CallHandler = std::function<void(const std::shared_ptr<Worker>&, const CallBlock&)>;
  using DeathHandler = std::function<void()>;

  // Starts the process. `on_call` runs on the worker's own thread here, for one call after the
  // other; `on_death` on the same thread, once, after the last call. Nothing may be asked before
  // WaitForHello.
  static backend::Result<std::shared_ptr<Worker>> Start(Supervisor& supervisor,
                                                        WorkerOptions options, CallHandler on_call,
                                                        DeathHandler on_death);
  ~Worker();

  // Waits until the process is there; fails when it ends or is condemned before, or takes too long.
  backend::Error WaitForHello();

  // Gives a worker that has not been told to initialize to another owner, under another name.
  void Adopt(std::string name, CallHandler on_call, DeathHandler on_death);

  pid_t pid() const { return process_->pid(); }
  WorkerMemory& memory() { return memory_; }
  const Region& region() const { return memory_.region(); }
  BlockPool& blocks() { return memory_.blocks(); }
  WorkLine& work() { return work_; }
  QuestionLine& questions() { return questions_; }
  const CallRing& calls() const { return calls_; }

  bool is_alive() const { return vitals_.is_alive(); }
  // Why the worker is not there. Needs !is_alive().
  std::string DeathMessage() const { return vitals_.DeathMessage(); }
  // Ends the process for what it did; every thread that waits for the worker learns why.
  void Condemn(const std::string& why) { vitals_.Condemn(why); }
  // Waits for the process to end by itself, then kills it. The thread for calls ends, too; not for
  // that thread.
  void Stop(std::chrono::steady_clock::time_point deadline);
  // Of a worker that has died: waits until its last call was handled, but not for long.
  void WaitForLastCalls();

 private:
  // Whose worker this is.
  struct Owner {
    CallHandler on_call;
    DeathHandler on_death;
  };

  Worker(WorkerOptions options, std::unique_ptr<Region> region, CallHandler on_call,
         DeathHandler on_death);

  backend::Error Launch(Supervisor& supervisor);
  // Why a process that never was there says it ended; empty if it said nothing.
  std::string LastWords() const;
  void Listen();
  std::shared_ptr<const Owner> owner() const;

  const WorkerOptions options_;
  WorkerMemory memory_;
  Vitals vitals_;
  CallRing calls_;
  WorkLine work_;
  QuestionLine questions_;
  mutable backend::Mutex owner_mutex_;
  std::shared_ptr<const Owner> owner_ NEREID_KIT_GUARDED_BY(owner_mutex_);
  std::shared_ptr<Process> process_;
  int channel_ = -1;
  std::thread listener_;
};

}  // namespace nereid::python
