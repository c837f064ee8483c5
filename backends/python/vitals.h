// SPDX-License-Identifier: Apache-2.0
// Whether a worker is alive, and why it ended.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "backend_kit/mutex.h"
#include "python_backend/protocol.h"

namespace nereid::python {

// The reason for ending a worker whose messages or offsets make no sense.
inline constexpr const char* kCorruption = "it corrupted the memory shared with the server";

// The state of one worker process. A worker that has died stays dead. Thread-safe.
class Vitals {
 public:
  using Clock = std::chrono::steady_clock;

  // `name` is the worker's name in messages, `control` has the words that threads of this process
  // wait for, and `kill` kills the worker's process without waiting for its end.
  // `what` is what messages call such a process.
  Vitals(std::string name, Control& control, std::function<void()> kill,
         std::string what = "Stub process")
      : control_(control), kill_(std::move(kill)), what_(std::move(what)), name_(std::move(name)) {}
  Vitals(const Vitals&) = delete;
  Vitals& operator=(const Vitals&) = delete;

  bool is_alive() const { return !is_dead_.load(std::memory_order_acquire); }
  // Returns what the process is, and its name.
  std::string label() const;
  void Rename(std::string name);

  // Ends the process because of a fault. Does nothing if it has ended or was condemned before.
  void Condemn(const std::string& why);
  // Records that the process has ended: `how` is the reason unless it was condemned. Called once.
  void NoteExit(std::string how);
  // Waits until the process has ended. Returns false at `deadline`.
  bool WaitForExit(Clock::time_point deadline);
  void WaitForExit();
  // Describes why the worker is not there, and what happened. REQUIRES:
  // !is_alive().
  std::string DeathMessage() const;

 private:
  // Wakes every thread of this process that waits for the worker.
  void WakeAll();

  Control& control_;
  const std::function<void()> kill_;
  const std::string what_;
  std::atomic<bool> is_dead_{false};
  mutable backend::Mutex mutex_;
  backend::CondVar exited_;
  std::string name_ NEREID_KIT_GUARDED_BY(mutex_);
  std::string why_ NEREID_KIT_GUARDED_BY(mutex_);
  bool has_exited_ NEREID_KIT_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::python
