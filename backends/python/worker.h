// SPDX-License-Identifier: Apache-2.0
// One worker: the process that runs a Python model for one instance. It consists of the memory
// shared with it (worker_memory.h), its life (vitals.h), its work (mailboxes.h) and its calls to
// the server (call_ring.h). A worker that has ended is replaced by another one. The owner of a
// worker stops it.
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

// How a worker is started.
struct WorkerOptions {
  Command command;                    // without the channel
  std::string greeting;               // JSON, sent to the worker first
  std::string name;                   // the instance's name, in errors
  std::string what = "Stub process";  // what errors call such a process
  std::chrono::seconds start_timeout{30};
};

// Thread-safe, except for work(), which one thread at a time may use.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  using CallHandler = std::function<void(const std::shared_ptr<Worker>&, const CallBlock&)>;
  using DeathHandler = std::function<void()>;

  // Starts the process. `on_call` runs on the worker's own thread in this process, for one call
  // after the other; `on_death` runs on the same thread, once, after the last call. WaitForHello
  // must come before any work.
  static backend::Result<std::shared_ptr<Worker>> Start(Supervisor& supervisor,
                                                        WorkerOptions options, CallHandler on_call,
                                                        DeathHandler on_death);
  ~Worker();

  // Waits until the process is ready. Fails if it ends, is condemned or takes too long.
  backend::Error WaitForHello();

  // Gives a worker that has not been told to initialize to another owner, under another name.
  void Adopt(std::string name, CallHandler on_call, DeathHandler on_death);

  pid_t pid() const { return process_->pid(); }
  uint64_t PrivateBytes() const { return process_->PrivateBytes(); }
  WorkerMemory& memory() { return memory_; }
  const Region& region() const { return memory_.region(); }
  BlockPool& blocks() { return memory_.blocks(); }
  WorkLine& work() { return work_; }
  QuestionLine& questions() { return questions_; }
  const CallRing& calls() const { return calls_; }

  bool is_alive() const { return vitals_.is_alive(); }
  // Describes why the worker is not there. REQUIRES: !is_alive().
  std::string DeathMessage() const { return vitals_.DeathMessage(); }
  // Ends the process because of a fault; every thread that waits for the worker learns why.
  void Condemn(const std::string& why) { vitals_.Condemn(why); }
  // Waits for the process to end by itself, then kills it. Also ends the thread for calls, which
  // must not call this.
  void Stop(std::chrono::steady_clock::time_point deadline);
  // Waits, but not for long, until the last call is handled. REQUIRES: the worker has died.
  void WaitForLastCalls();

 private:
  // The current owner of the worker.
  struct Owner {
    CallHandler on_call;
    DeathHandler on_death;
  };

  Worker(WorkerOptions options, std::unique_ptr<Region> region, CallHandler on_call,
         DeathHandler on_death);

  backend::Error Launch(Supervisor& supervisor);
  // Returns what a process that never became ready wrote about its end; empty if it wrote nothing.
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
