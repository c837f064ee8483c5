// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace nereid::cli {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

Interrupt::Interrupt() : end_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = base::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  thread_ = base::Thread("interrupt", [this] { Listen(); });
}

Interrupt::~Interrupt() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(end_.get(), &one, sizeof one);
  thread_.Join();
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interrupt::Listen() {
  pollfd waits[] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
  while (poll(waits, 2, -1) < 0) {
  }
  if ((waits[0].revents & POLLIN) == 0) return;
  signalfd_siginfo info{};
  [[maybe_unused]] const ssize_t taken = read(signals_.get(), &info, sizeof info);
  source_.request_stop();
  // This thread takes the second signal, as the only one that does not block it.
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  poll(&waits[1], 1, -1);
}

bool Interrupt::WaitFor(Seconds time) const {
  base::Mutex mutex;
  base::CondVar stopped;
  const std::stop_callback wake(source_.get_token(), [&] {
    base::MutexLock lock(mutex);
    stopped.NotifyOne();
  });
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(time);
  base::MutexLock lock(mutex);
  while (!is_requested() && stopped.WaitUntil(mutex, end)) {
  }
  return is_requested();
}

}  // namespace nereid::cli
