// SPDX-License-Identifier: Apache-2.0
#include "python_backend/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace nereid::python {
namespace {

using Clock = std::chrono::steady_clock;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void Wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Returns the number of cores that this process may use.
int CoreCount() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0
             ? CPU_COUNT(&cores)
             : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

std::chrono::nanoseconds SpinTime() {
  static const std::chrono::nanoseconds time = std::chrono::microseconds(CoreCount() > 1 ? 50 : 0);
  return time;
}

uint32_t LookWhile(const std::atomic<uint32_t>& word, uint32_t seen,
                   std::chrono::nanoseconds time) {
  uint32_t value = word.load(std::memory_order_acquire);
  if (value != seen || time.count() <= 0) return value;
  const Clock::time_point end = Clock::now() + time;
  do {
    for (int i = 0; i < 32; ++i) {
      Pause();
      value = word.load(std::memory_order_acquire);
      if (value != seen) return value;
    }
  } while (Clock::now() < end);
  return value;
}

uint32_t WaitWhile(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping, uint32_t seen,
                   std::chrono::nanoseconds spin, Clock::time_point deadline) {
  uint32_t value = LookWhile(word, seen, spin);
  if (value != seen) return value;
  timespec timeout{};
  const bool forever = deadline == Clock::time_point::max();
  if (!forever) {
    const auto left = std::chrono::nanoseconds(deadline - Clock::now()).count();
    if (left <= 0) return value;
    timeout = {left / 1000000000, left % 1000000000};
  }
  sleeping.store(1);
  value = word.load();
  if (value == seen) {
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, forever ? nullptr : &timeout, nullptr, 0);
    value = word.load();
  }
  sleeping.store(0);
  return value;
}

void Signal(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping) {
  word.fetch_add(1);
  if (sleeping.load() != 0) Wake(word);
}

void Publish(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping, uint32_t value) {
  word.store(value);
  if (sleeping.load() != 0) Wake(word);
}

}  // namespace nereid::python
