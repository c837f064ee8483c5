// SPDX-License-Identifier: Apache-2.0
#include "app/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/log.h"

namespace nereid::app {
namespace {

sigset_t SetOf(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

}  // namespace

Signals::Signals() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const sigset_t set = SetOf({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = base::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

Signals::Event Signals::Wait(std::chrono::seconds timeout) {
  pollfd waits[] = {{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  const auto timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  if (poll(waits, 2, static_cast<int>(timeout_ms)) <= 0) return Event::kNothing;
  if (const Event event = ReadSignal(); event != Event::kNothing) return event;
  uint64_t count = 0;
  return read(wake_.get(), &count, sizeof count) == sizeof count ? Event::kWoken : Event::kNothing;
}

Signals::Event Signals::ReadSignal() {
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) != sizeof info) return Event::kNothing;
  switch (info.ssi_signo) {
    case SIGINT:
    case SIGTERM:
      return Event::kStop;
    case SIGHUP:
      return Event::kReopenLog;
    default:
      NEREID_LOG(kInfo, "signal {} means nothing to this server", info.ssi_signo);
      return Event::kNothing;
  }
}

void Signals::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void Signals::LetStopEndTheProcess() {
  const sigset_t set = SetOf({SIGINT, SIGTERM});
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace nereid::app
