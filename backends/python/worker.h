// SPDX-License-Identifier: Apache-2.0
// One worker: the process that runs a Python model for one instance, and the memory shared with it.
// A worker that has ended stays ended; whoever wants another starts another. Whoever has one stops
// it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "backend_kit/mutex.h"
#include "python_backend/process.h"
#include "python_backend/region.h"

namespace nereid::python {

// What a worker asks for: the block with the call, which stays as long as its answer is owed.
struct CallBlock {
  BlockHeader* header;
  Call kind;
  std::span<const char> payload;
};

// What a worker is started with.
struct WorkerOptions {
  Command command;       // the channel apart
  std::string greeting;  // JSON, told to the worker first
  std::string name;      // of the instance, in errors
  std::chrono::seconds start_timeout{30};
};

// Thread-safe, but for Run, of which there is one at a time.
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

  // Gives a worker that has not been told to initialize to somebody else, under another name.
  void Adopt(std::string name, CallHandler on_call, DeathHandler on_death);

  pid_t pid() const { return process_->pid(); }
  const Region& region() const { return *region_; }
  BlockPool& blocks() { return blocks_; }
  // Where requests are received.
  BlockPool& inputs() { return inputs_; }
  // How many requests are in blocks of `inputs`, or on their way there.
  int lease_count() const { return leases_.load(std::memory_order_relaxed); }
  void CountLease(int change) { leases_.fetch_add(change, std::memory_order_relaxed); }
  bool is_alive() const { return !is_dead_.load(std::memory_order_acquire); }
  // Why the worker is not there, in the words that Triton's users know, and what happened. Needs
  // !is_alive().
  std::string DeathMessage() const;

  // How a piece of work ended, and what came of it.
  struct Answer {
    Outcome outcome;
    std::span<const char> payload;
  };
  // Has a piece of work done; `payload` is what belongs to it, and may be empty. The answer is
  // valid until ReleaseAnswer, which must be called, or the next Run.
  backend::Result<Answer> Run(Work work, const BlockPool::Block& block, uint64_t size,
                              std::chrono::steady_clock::time_point deadline =
                                  std::chrono::steady_clock::time_point::max());
  // The same in parts: has it begun, looks for the answer for `patience` at most (nothing if there
  // is none then, or not all that the worker called for before it is handled), and waits for it.
  // Look is for once, and Wait comes last.
  void Begin(Work work, const BlockPool::Block& block, uint64_t size);
  std::optional<Answer> Look(std::chrono::nanoseconds patience);
  backend::Result<Answer> Wait();
  void ReleaseAnswer();
  // The block of the answer; null if there is none.
  const BlockHeader* answer() const { return answer_; }
  // The same for somebody who calls Release for it later.
  BlockHeader* TakeAnswer() { return std::exchange(answer_, nullptr); }
  // The same with text both ways.
  backend::Result<std::string> RunText(Work work, std::string_view text,
                                       std::chrono::steady_clock::time_point deadline =
                                           std::chrono::steady_clock::time_point::max());
  // Asks something that is answered beside the work. One at a time, whoever asks: where an earlier
  // question is not answered yet, its answer serves.
  backend::Result<std::string> Ask(Work question, std::chrono::steady_clock::time_point deadline);

  // Ends the process for what it did, which is told to whoever waits for it.
  void Condemn(const std::string& why);
  // Waits for the process to end by itself, then kills it. The thread for calls ends, too; not for
  // that thread.
  void Stop(std::chrono::steady_clock::time_point deadline);

  // Waits until every call that the worker had made when this began was handled. Not for the thread
  // of calls.
  void WaitForCalls();

  // Whether that would wait.
  bool HasOpenCalls() const;

  // The same for a worker that has died: until its last call was handled, or for a moment.
  void WaitForLastCalls() const;

  // Answers a call. Any thread.
  void Reply(BlockHeader* header, Outcome outcome);
  void Reply(BlockHeader* header, Outcome outcome, std::string_view text);
  void Reply(BlockHeader* header, Outcome outcome, const BlockPool::Block& block, uint64_t size);
  // Ends a call that wants no answer.
  static void Release(BlockHeader* header);

 private:
  Worker(WorkerOptions options, std::unique_ptr<Region> region, CallHandler on_call,
         DeathHandler on_death);

  backend::Error Launch(Supervisor& supervisor);
  // Why a process that never was there says it ended; empty if it said nothing.
  std::string LastWords() const;
  void OnExit(std::string how);
  void WakeAll();
  void Listen();
  bool TakeCall();
  // What was put into a mailbox, and what had come back before.
  struct Ticket {
    uint32_t number = 0;  // 0 for none
    uint32_t seen = 0;
  };
  static Ticket Put(Mailbox& to, const Mailbox& from, Work work, uint64_t offset, uint64_t size);
  backend::Result<Answer> Await(Mailbox& from, Ticket ticket, std::chrono::nanoseconds spin,
                                std::chrono::steady_clock::time_point deadline,
                                BlockHeader** answer_block);

  std::string name() const;
  // Who hears of calls and of the end.
  struct Owner {
    CallHandler on_call;
    DeathHandler on_death;
  };
  std::shared_ptr<const Owner> owner() const;

  const WorkerOptions options_;
  const std::unique_ptr<Region> region_;
  BlockPool blocks_;
  BlockPool inputs_;
  std::atomic<int> leases_{0};
  mutable backend::Mutex owner_mutex_;
  std::string name_ NEREID_KIT_GUARDED_BY(owner_mutex_);
  std::shared_ptr<const Owner> owner_ NEREID_KIT_GUARDED_BY(owner_mutex_);
  std::shared_ptr<Process> process_;
  int channel_ = -1;
  std::thread listener_;
  Ticket begun_;                   // of the last Run or Begin
  BlockHeader* answer_ = nullptr;  // of the last Run
  uint32_t misses_ = 0;            // of looking for an answer instead of sleeping
  uint32_t skipped_looks_ = 0;
  backend::Mutex question_mutex_;
  Ticket open_question_
      NEREID_KIT_GUARDED_BY(question_mutex_);  // that nobody waited for long enough
  std::atomic<uint32_t> handled_calls_{0};
  std::atomic<bool> is_listening_{true};
  std::atomic<bool> is_dead_{false};
  mutable backend::Mutex death_mutex_;
  backend::CondVar died_;
  bool has_exited_ NEREID_KIT_GUARDED_BY(death_mutex_) = false;
  std::string why_ NEREID_KIT_GUARDED_BY(death_mutex_);
};

}  // namespace nereid::python
