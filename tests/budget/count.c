// SPDX-License-Identifier: Apache-2.0
// Preloaded into the server by test_budget.py: counts allocations, locks, contended locks,
// signalled condition variables, and bytes of large copies. The counters are in the file that
// NEREID_COUNT_FILE names, where the test reads them. Also permits calls.c to trace the server,
// which a system may restrict to a process's parents.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct counters {
  _Atomic uint64_t allocations;
  _Atomic uint64_t locks;
  _Atomic uint64_t waits;  // locks that were held by another thread
  _Atomic uint64_t signals;
  _Atomic uint64_t copied;  // bytes of copies of at least kLargeCopy
};

enum { kLargeCopy = 65536 };

static struct counters before_start;
static struct counters* counters = &before_start;

__attribute__((constructor)) static void open_counters(void) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const char* path = getenv("NEREID_COUNT_FILE");
  if (path == NULL) return;
  int fd = open(path, O_RDWR);
  if (fd < 0) return;
  void* at = mmap(NULL, sizeof(struct counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at != MAP_FAILED) counters = at;
}

static void count(_Atomic uint64_t* counter) {
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// dlsym allocates before the real functions are known; this memory serves it and is never freed.
static _Alignas(16) char early[65536];
static size_t early_used;

static void* early_allocate(size_t size) {
  size_t at = (early_used + 15) & ~(size_t)15;
  if (at + size > sizeof(early)) abort();
  early_used = at + size;
  return early + at;
}

static int is_early(const void* p) {
  return (const char*)p >= early && (const char*)p < early + sizeof(early);
}

static void* (*real_malloc)(size_t);
static void* (*real_calloc)(size_t, size_t);
static void* (*real_realloc)(void*, size_t);
static void (*real_free)(void*);
static void* (*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void**, size_t, size_t);
static void* (*real_memcpy)(void*, const void*, size_t);
static void* (*real_memmove)(void*, const void*, size_t);
static int (*real_signal)(pthread_cond_t*);
static int (*real_broadcast)(pthread_cond_t*);
static int (*real_lock)(pthread_mutex_t*);

// On x86-64, an older version of condition variables has the same names; this is the one in use.
static const char kCondVersion[] = "GLIBC_2.3.2";

static int resolve(void) {
  static _Thread_local int resolving;
  if (real_lock != NULL) return 1;
  if (resolving) return 0;
  resolving = 1;
  real_malloc = dlsym(RTLD_NEXT, "malloc");
  real_calloc = dlsym(RTLD_NEXT, "calloc");
  real_realloc = dlsym(RTLD_NEXT, "realloc");
  real_free = dlsym(RTLD_NEXT, "free");
  real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
  real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
  real_memcpy = dlsym(RTLD_NEXT, "memcpy");
  real_memmove = dlsym(RTLD_NEXT, "memmove");
  real_signal = dlvsym(RTLD_NEXT, "pthread_cond_signal", kCondVersion);
  real_broadcast = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", kCondVersion);
  if (real_signal == NULL) real_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
  if (real_broadcast == NULL) real_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
  real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  resolving = 0;
  return 1;
}

void* malloc(size_t size) {
  if (!resolve()) return early_allocate(size);
  count(&counters->allocations);
  return real_malloc(size);
}

void* calloc(size_t number, size_t size) {
  if (!resolve()) return early_allocate(number * size);
  count(&counters->allocations);
  return real_calloc(number, size);
}

void* realloc(void* old, size_t size) {
  if (!resolve()) return early_allocate(size);
  count(&counters->allocations);
  if (!is_early(old)) return real_realloc(old, size);
  void* made = real_malloc(size);
  size_t rest = (size_t)(early + sizeof(early) - (char*)old);
  if (made != NULL) memcpy(made, old, size < rest ? size : rest);
  return made;
}

void free(void* p) {
  if (p == NULL || is_early(p)) return;
  if (resolve()) real_free(p);
}

void* aligned_alloc(size_t alignment, size_t size) {
  if (!resolve()) abort();
  count(&counters->allocations);
  return real_aligned_alloc(alignment, size);
}

void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

int posix_memalign(void** out, size_t alignment, size_t size) {
  if (!resolve()) abort();
  count(&counters->allocations);
  return real_posix_memalign(out, alignment, size);
}

// operator new in all its forms, because an allocator with its own operator new would bypass
// malloc.
static void* make(size_t size) {
  void* p = malloc(size == 0 ? 1 : size);
  if (p == NULL) abort();
  return p;
}
void* _Znwm(size_t size) { return make(size); }
void* _Znam(size_t size) { return make(size); }
void* _ZnwmRKSt9nothrow_t(size_t size, const void* tag) { return (void)tag, malloc(size); }
void* _ZnamRKSt9nothrow_t(size_t size, const void* tag) { return (void)tag, malloc(size); }
static size_t rounded(size_t size, size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}
void* _ZnwmSt11align_val_t(size_t size, size_t alignment) {
  return aligned_alloc(alignment, rounded(size, alignment));
}
void* _ZnamSt11align_val_t(size_t size, size_t alignment) {
  return aligned_alloc(alignment, rounded(size, alignment));
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!resolve()) return 0;  // only dlsym itself, before there are other threads
  count(&counters->locks);
  int error = pthread_mutex_trylock(mutex);
  if (error != EBUSY) return error;
  count(&counters->waits);
  return real_lock(mutex);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  if (!resolve()) return 0;
  count(&counters->signals);
  return real_signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  if (!resolve()) return 0;
  count(&counters->signals);
  return real_broadcast(condition);
}

static void count_copy(size_t size) {
  if (size < kLargeCopy) return;
  atomic_fetch_add_explicit(&counters->copied, size, memory_order_relaxed);
}

// Copies byte by byte while the real functions are being looked up.
static void* copy_slowly(void* to, const void* from, size_t size) {
  volatile char* out = to;
  const char* in = from;
  if (to < from) {
    for (size_t i = 0; i < size; ++i) out[i] = in[i];
  } else {
    for (size_t i = size; i > 0; --i) out[i - 1] = in[i - 1];
  }
  return to;
}

void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  if (!resolve()) return copy_slowly(to, from, size);
  count_copy(size);
  return real_memcpy(to, from, size);
}

void* memmove(void* to, const void* from, size_t size) {
  if (!resolve()) return copy_slowly(to, from, size);
  count_copy(size);
  return real_memmove(to, from, size);
}
