// SPDX-License-Identifier: Apache-2.0
#include "python_backend/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "python_backend/leftovers.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;

constexpr int kChannel = 3;

std::string HowItEnded(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return StrCat("it exited with status ", info.si_status);
  const char* name = sigdescr_np(info.si_status);
  return StrCat("it was killed by signal ", info.si_status, " (", name == nullptr ? "?" : name,
                ")");
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts a process with the default signal handling, and without the server's descriptors except
// the channel.
Result<pid_t> Spawn(Command command) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&actions);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // The process leads its own group, so that its children can be killed with it and signals of a
  // terminal reach only the server.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, command.channel, kChannel);
  posix_spawn_file_actions_addclosefrom_np(&actions, kChannel + 1);
  std::vector<char*> arguments = Pointers(command.arguments);
  std::vector<char*> environment = Pointers(command.environment);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return Error::Internal(
        StrCat("failed to start '", command.arguments[0], "': ", std::strerror(error)));
  }
  return pid;
}

}  // namespace

Process::~Process() { close(pidfd_); }

uint64_t Process::PrivateBytes() const {
  std::ifstream file(StrCat("/proc/", pid_, "/smaps_rollup"));
  uint64_t kilobytes = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Private_")) {
      kilobytes += std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
    }
  }
  return kilobytes * 1024;
}

void Process::Kill() const { syscall(SYS_pidfd_send_signal, pidfd_, SIGKILL, nullptr, 0); }

struct Supervisor::Job {
  Command command;
  std::function<void(std::string)> on_exit;
  std::optional<Result<std::shared_ptr<Process>>> result;
};

Supervisor::Supervisor() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { Run(); });
}

Supervisor::~Supervisor() {
  {
    const backend::MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  Notify();
  thread_.join();
  close(event_);
}

void Supervisor::Notify() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof(one));
}

Result<std::shared_ptr<Process>> Supervisor::Start(Command command,
                                                   std::function<void(std::string)> on_exit) {
  Job job{std::move(command), std::move(on_exit), std::nullopt};
  const backend::MutexLock lock(mutex_);
  jobs_.push_back(&job);
  Notify();
  while (!job.result) finished_.Wait(mutex_);
  return std::move(*job.result);
}

void Supervisor::Launch(Job& job) {
  // The source descriptor must differ from the number it becomes, or it would stay closed on exec.
  Command command = job.command;
  const int channel = fcntl(command.channel, F_DUPFD_CLOEXEC, 16);
  if (channel < 0) {
    job.result = Error::Internal(StrCat("failed to start a process: ", std::strerror(errno)));
    return;
  }
  command.channel = channel;
  Result<pid_t> pid = Spawn(std::move(command));
  close(channel);
  if (!pid.ok()) {
    job.result = pid.TakeError();
    return;
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid.value(), 0));
  if (pidfd < 0) {
    const int error = errno;
    kill(pid.value(), SIGKILL);
    waitpid(pid.value(), nullptr, 0);
    job.result = Error::Internal(StrCat("failed to watch a process: ", std::strerror(error)));
    return;
  }
  fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  NoteGroup(pid.value());
  auto process = std::make_shared<Process>(pid.value(), pidfd);
  children_.emplace(pidfd, Child{process, std::move(job.on_exit)});
  job.result = std::move(process);
}

void Supervisor::Reap() {
  for (auto child = children_.begin(); child != children_.end();) {
    siginfo_t info{};
    const pid_t pid = child->second.process->pid();
    // Not waited for at first: until then no other process gets its number.
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == 0) {
      ++child;
      continue;
    }
    EndGroup(pid);
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG);
    // If other code waits for all children of the process, the reason of its end is lost.
    std::string how = info.si_pid == 0 ? "it ended" : HowItEnded(info);
    const Child ended = std::move(child->second);
    child = children_.erase(child);
    ended.on_exit(std::move(how));
  }
}

void Supervisor::Run() {
  pthread_setname_np(pthread_self(), "python-super");
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  bool is_stopping = false;
  while (!is_stopping || !children_.empty()) {
    std::vector<pollfd> waits = {{event_, POLLIN, 0}};
    for (const auto& [pidfd, child] : children_) waits.push_back({pidfd, POLLIN, 0});
    poll(waits.data(), waits.size(), -1);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(event_, &count, sizeof(count));
    {
      const backend::MutexLock lock(mutex_);
      for (Job* job : jobs_) Launch(*job);
      jobs_.clear();
      finished_.NotifyAll();
      if (is_stopping_ && !is_stopping) {
        is_stopping = true;
        for (const auto& [pidfd, child] : children_) child.process->Kill();
      }
    }
    Reap();
  }
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return environment;
}

void SetVariable(std::vector<std::string>& environment, const std::string& key,
                 const std::string& value) {
  std::erase_if(environment, [&](const std::string& variable) {
    return variable.compare(0, key.size() + 1, key + "=") == 0;
  });
  environment.push_back(key + "=" + value);
}

bool HasVariable(const std::vector<std::string>& environment, const std::string& key) {
  return std::ranges::any_of(environment, [&](const std::string& variable) {
    return variable.compare(0, key.size() + 1, key + "=") == 0;
  });
}

std::string Variable(const std::vector<std::string>& environment, const std::string& key) {
  for (const std::string& variable : environment) {
    if (variable.compare(0, key.size() + 1, key + "=") == 0) {
      return variable.substr(key.size() + 1);
    }
  }
  return {};
}

}  // namespace nereid::python
