// SPDX-License-Identifier: Apache-2.0
#include "loadgen/poller.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace nereid::loadgen {

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void Poller::Add(int fd, void* user) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = user}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Poller::WantWrite(int fd, void* user, bool wanted) {
  epoll_event event{.events = EPOLLIN | (wanted ? EPOLLOUT : 0U), .data = {.ptr = user}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::WakeAt(base::TimePoint time) {
  if (time == wake_at_) return;
  wake_at_ = time;
  if (!timer_.valid()) {
    timer_ = base::UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    Add(timer_.get(), this);
  }
  // The clock begins with the machine: an earlier time is no time, and zero would switch the timer
  // off.
  const int64_t ns = std::max<int64_t>(1, time.time_since_epoch().count());
  constexpr int64_t kSecond = 1'000'000'000;
  const itimerspec when{.it_interval = {}, .it_value = {ns / kSecond, ns % kSecond}};
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Poller::TimerExpired() {
  uint64_t times = 0;
  [[maybe_unused]] const ssize_t taken = read(timer_.get(), &times, sizeof times);
}

}  // namespace nereid::loadgen
