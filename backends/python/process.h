// SPDX-License-Identifier: Apache-2.0
// Starts processes and reports their end. One thread, which lives as long as this object, starts
// all of them: the kernel kills a worker when the thread that started it ends, so that no worker
// outlives its server. No shell is involved.
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

// How a process is started.
struct Command {
  std::vector<std::string> arguments;    // the first is the program, with its path
  std::vector<std::string> environment;  // KEY=value
  int channel = -1;                      // becomes descriptor 3; all higher ones are closed
};

// A running process. Immutable; a callback reports its end.
class Process {
 public:
  Process(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }
  // Does nothing if the process has ended; never kills another process that got its number.
  void Kill() const;
  // The bytes of memory that no other process has; 0 if the system does not tell.
  uint64_t PrivateBytes() const;

 private:
  const pid_t pid_;
  const int pidfd_;
};

// Starts and watches processes. Thread-safe.
class Supervisor {
 public:
  Supervisor();
  // Kills all processes that still run.
  ~Supervisor();

  // `on_exit` is called once, on the supervisor's thread, with the reason of the process's end; it
  // must not block.
  backend::Result<std::shared_ptr<Process>> Start(Command command,
                                                  std::function<void(std::string)> on_exit);

 private:
  struct Job;
  // A process that is watched, and the callback for its end.
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
  std::map<int, Child> children_;  // by pidfd; confined to the thread
  std::thread thread_;
};

// Returns the environment of this process, as KEY=value.
std::vector<std::string> CurrentEnvironment();
// Sets KEY in such an environment.
void SetVariable(std::vector<std::string>& environment, const std::string& key,
                 const std::string& value);
// Returns whether KEY is there, even with an empty value.
bool HasVariable(const std::vector<std::string>& environment, const std::string& key);
// Returns the value of KEY; empty if there is none.
std::string Variable(const std::vector<std::string>& environment, const std::string& key);

}  // namespace nereid::python
