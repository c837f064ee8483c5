// SPDX-License-Identifier: Apache-2.0
// What the worker cannot do in Python: atomic stores that other processes see in order, and waiting
// for them. Loaded with ctypes by any version of Python; needs nothing but the system call function.
// The other side is ../wait.h.
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
typedef _Atomic uint32_t Word;

static void Pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Waits until *word is not `seen` any more, looking for `spin_ns` before going to sleep, and returns
// its value; `seen` after `timeout_ns`, unless that is negative. May return `seen` early, too.
EXPORT uint32_t nereid_wait(Word* word, Word* sleeping, uint32_t seen, int64_t spin_ns,
                            int64_t timeout_ns) {
  uint32_t value = atomic_load_explicit(word, memory_order_acquire);
  if (value != seen) return value;
  if (spin_ns > 0) {
    const int64_t end = Now() + spin_ns;
    do {
      for (int i = 0; i < 32; ++i) {
        Pause();
        value = atomic_load_explicit(word, memory_order_acquire);
        if (value != seen) return value;
      }
    } while (Now() < end);
  }
  struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  atomic_store(sleeping, 1);
  value = atomic_load(word);
  if (value == seen) {
    syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout_ns < 0 ? 0 : &timeout, 0, 0);
    value = atomic_load(word);
  }
  atomic_store(sleeping, 0);
  return value;
}

// Adds one to *word, after everything written before, and wakes who sleeps on it.
EXPORT void nereid_signal(Word* word, Word* sleeping) {
  atomic_fetch_add(word, 1);
  if (atomic_load(sleeping) != 0) syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, 0, 0, 0);
}

EXPORT void nereid_store(Word* word, uint32_t value) {
  atomic_store_explicit(word, value, memory_order_release);
}

EXPORT uint32_t nereid_load(Word* word) {
  return atomic_load_explicit(word, memory_order_acquire);
}

// Appends to a ring of `capacity` places; false when it is full. Callers see to it that there is one
// at a time.
EXPORT int nereid_append(uint64_t* ring, uint32_t capacity, Word* head, Word* tail, Word* bell,
                         Word* sleeping, uint64_t value) {
  const uint32_t at = atomic_load_explicit(head, memory_order_relaxed);
  if (at - atomic_load_explicit(tail, memory_order_acquire) >= capacity) return 0;
  ring[at % capacity] = value;
  atomic_store_explicit(head, at + 1, memory_order_release);
  nereid_signal(bell, sleeping);
  return 1;
}

// The end of one piece of work and the wait for the next: one call, so that it costs one.
EXPORT uint32_t nereid_finish(Word* done, Word* done_sleeping, Word* work, Word* work_sleeping,
                              uint32_t seen, int64_t spin_ns) {
  // Looking pays where work follows on work; where it did not, it is tried less and less. Only the main
  // thread is here.
  static uint32_t misses = 0;
  static uint32_t skipped = 0;
  nereid_signal(done, done_sleeping);
  const int looks = misses == 0 || ++skipped >= misses;
  if (!looks) return nereid_wait(work, work_sleeping, seen, 0, -1);
  skipped = 0;
  const int64_t start = Now();
  const uint32_t value = nereid_wait(work, work_sleeping, seen, spin_ns, -1);
  if (Now() - start <= spin_ns) {
    misses = 0;
  } else if (misses < 32) {
    misses = misses * 2 + 1;
  }
  return value;
}
