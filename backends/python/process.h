// SPDX-License-Identifier: Apache-2.0
// Starts processes and hears of their end. All are started by one thread, which lives as long as
// this object: the kernel kills a worker when the thread that started it ends, so that no worker
// outlives its server. Nothing here goes through a shell.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"

namespace nereid::python {

// What a process is started with.
struct Command {
  std::vector<std::string> arguments;    // the first is the program, with its path
  std::vector<std::string> environment;  // KEY=value
  int channel = -1;                      // becomes descriptor 3; all others above are closed
};

// A running process. Immutable; its end is told by the callback.
class Process {
 public:
  Process(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }
  // Does nothing when it has ended; never another process that got its number.
  void Kill() const;

 private:
  const pid_t pid_;
  const int pidfd_;
};

// Thread-safe.
class Supervisor {
 public:
  Supervisor();
  // Kills what still runs.
  ~Supervisor();

  // `on_exit` is called once, with how the process ended, on the supervisor's thread; it must not
  // block.
  backend::Result<std::shared_ptr<Process>> Start(Command command,
                                                  std::function<void(std::string)> on_exit);

 private:
  struct Job;
  // A process that is watched, and who hears of its end.
  struct Child {
    std::shared_ptr<Process> process;
    std::function<void(std::string)> on_exit;
  };

  void Run();
  void Launch(Job& job) NEREID_KIT_REQUIRES(mutex_);
  void Reap();
  void Notify() const;

  int event_ = -1;
  backend::Mutex mutex_;
  backend::CondVar finished_;
  std::vector<Job*> jobs_ NEREID_KIT_GUARDED_BY(mutex_);  // with their results
  bool is_stopping_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  std::map<int, Child> children_;  // by pidfd; the thread's
  std::thread thread_;
};

// The environment of this process, as KEY=value.
std::vector<std::string> CurrentEnvironment();
// Sets KEY in such an environment.
void SetVariable(std::vector<std::string>& environment, const std::string& key,
                 const std::string& value);
// The value of KEY; empty when there is none.
std::string Variable(const std::vector<std::string>& environment, const std::string& key);

}  // namespace nereid::python
