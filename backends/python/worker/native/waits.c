// SPDX-License-Identifier: Apache-2.0
// Words in shared memory that both processes use atomically, and waiting for them; the server's
// side is ../../wait.h. All places are offsets in the region.
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "native.h"

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

// Waits while *word equals `seen`, polling for `spin_ns` before going to sleep, and returns its
// value; returns `seen` after `timeout_ns`, unless that is negative. May return `seen` early, too.
static uint32_t WaitFor(Word* word, Word* sleeping, uint32_t seen, int64_t spin_ns,
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
    syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout_ns < 0 ? NULL : &timeout, NULL, 0);
    value = atomic_load(word);
  }
  atomic_store(sleeping, 0);
  return value;
}

// Adds one to *word, after everything written before, and wakes threads that sleep on it.
static void SignalWord(Word* word, Word* sleeping) {
  atomic_fetch_add(word, 1);
  if (atomic_load(sleeping) != 0) syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

// Ends the current work and waits for the next.
static uint32_t NextWork(uint32_t seen) {
  // Polling pays if work follows work; the more often it failed, the less often it is tried. Only
  // the main thread calls this.
  static uint32_t misses = 0;
  static uint32_t skipped = 0;
  Control* const control = ControlOf();
  Word* const work = &control->work.word;
  Word* const sleeping = &control->work.sleeping;
  SignalWord(&control->done.word, &control->done.sleeping);
  const int looks = region.spin_ns > 0 && (misses == 0 || ++skipped >= misses);
  if (!looks) return WaitFor(work, sleeping, seen, 0, -1);
  skipped = 0;
  const int64_t start = Now();
  const uint32_t value = WaitFor(work, sleeping, seen, region.spin_ns, -1);
  if (Now() - start <= region.spin_ns) {
    misses = 0;
  } else if (misses < 32) {
    misses = misses * 2 + 1;
  }
  return value;
}

// Reads the contents of a mailbox whose word is `word`.
static PyObject* ReadMailbox(uint32_t word, const Mailbox* from) {
  return Py_BuildValue("IIKK", from->kind, word, (unsigned long long)from->offset,
                       (unsigned long long)from->size);
}

// finish(outcome, ticket, offset, size)
static PyObject* Finish(PyObject* self, PyObject* args) {
  (void)self;
  unsigned int outcome = 0, ticket = 0;
  unsigned long long offset = 0, size = 0;
  if (!PyArg_ParseTuple(args, "IIKK", &outcome, &ticket, &offset, &size)) return NULL;
  Control* const control = ControlOf();
  control->done.kind = outcome;
  control->done.ticket = ticket;
  control->done.offset = offset;
  control->done.size = size;
  uint32_t word = ticket;
  Py_BEGIN_ALLOW_THREADS;
  word = NextWork(ticket);
  Py_END_ALLOW_THREADS;
  while (word == ticket) {
    if (PyErr_CheckSignals() != 0) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    word = WaitFor(&control->work.word, &control->work.sleeping, ticket, 0, -1);
    Py_END_ALLOW_THREADS;
  }
  return ReadMailbox(word, &control->work);
}

// wait(word, sleeping, seen, looks, timeout_ns)
static PyObject* Wait(PyObject* self, PyObject* args) {
  (void)self;
  unsigned long long word = 0, sleeping = 0;
  unsigned int seen = 0;
  int looks = 0;
  long long timeout_ns = 0;
  if (!PyArg_ParseTuple(args, "KKIpL", &word, &sleeping, &seen, &looks, &timeout_ns)) return NULL;
  uint32_t value = 0;
  Py_BEGIN_ALLOW_THREADS;
  value = WaitFor(WordAt(word), WordAt(sleeping), seen, looks ? region.spin_ns : 0, timeout_ns);
  Py_END_ALLOW_THREADS;
  return PyLong_FromUnsignedLong(value);
}

// signal(word, sleeping)
static PyObject* Signal(PyObject* self, PyObject* args) {
  (void)self;
  unsigned long long word = 0, sleeping = 0;
  if (!PyArg_ParseTuple(args, "KK", &word, &sleeping)) return NULL;
  SignalWord(WordAt(word), WordAt(sleeping));
  Py_RETURN_NONE;
}

// store(word, value)
static PyObject* Store(PyObject* self, PyObject* args) {
  (void)self;
  unsigned long long word = 0;
  unsigned int value = 0;
  if (!PyArg_ParseTuple(args, "KI", &word, &value)) return NULL;
  atomic_store_explicit(WordAt(word), value, memory_order_release);
  Py_RETURN_NONE;
}

// load(word)
static PyObject* Load(PyObject* self, PyObject* word) {
  (void)self;
  const unsigned long long at = PyLong_AsUnsignedLongLong(word);
  if (PyErr_Occurred()) return NULL;
  return PyLong_FromUnsignedLong(atomic_load_explicit(WordAt(at), memory_order_acquire));
}

// Returns whether the word belongs to this process now: it belonged to no process, or to one that
// is gone.
static int Claim(Word* word) {
  const uint32_t mine = (uint32_t)getpid();
  uint32_t owner = 0;
  if (atomic_compare_exchange_strong(word, &owner, mine)) return 1;
  return kill((pid_t)owner, 0) != 0 && errno == ESRCH &&
         atomic_compare_exchange_strong(word, &owner, mine);
}

// begin_in_child()
static PyObject* BeginInChild(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  ++generation;
  // The child does not outlive the worker.
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  Py_RETURN_NONE;
}

// claim(word)
static PyObject* ClaimWord(PyObject* self, PyObject* word) {
  (void)self;
  const unsigned long long at = PyLong_AsUnsignedLongLong(word);
  if (PyErr_Occurred()) return NULL;
  return PyBool_FromLong(Claim(WordAt(at)));
}

// append(value)
static PyObject* Append(PyObject* self, PyObject* value) {
  (void)self;
  const uint64_t offset = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) return NULL;
  Control* const control = ControlOf();
  Word* const owner = (Word*)&control->ring_owner;
  while (!Claim(owner)) sched_yield();
  Word* const head = &control->ring_head;
  const uint32_t at = atomic_load_explicit(head, memory_order_relaxed);
  const uint32_t tail = atomic_load_explicit(&control->ring_tail, memory_order_acquire);
  const int has_place = at - tail < kRingCapacity;
  if (has_place) {
    control->ring[at % kRingCapacity] = offset;
    atomic_store_explicit(head, at + 1, memory_order_release);
  }
  atomic_store(owner, 0);
  if (!has_place) Py_RETURN_FALSE;
  SignalWord(&control->ring_bell, &control->ring_sleeping);
  Py_RETURN_TRUE;
}

static PyMethodDef kFunctions[] = {
    {"finish", Finish, METH_VARARGS,
     "Tells how a piece of work ended and waits for the next: kind, its ticket, offset, size."},
    {"wait", Wait, METH_VARARGS, "Waits until a word has another value than the one seen."},
    {"signal", Signal, METH_VARARGS, "Adds one to a word and wakes who waits for it."},
    {"store", Store, METH_VARARGS, "Sets a word, after everything written before."},
    {"load", Load, METH_O, "The value of a word, before everything read after."},
    {"append", Append, METH_O, "Appends to the ring of calls; False when it is full."},
    {"begin_in_child", BeginInChild, METH_NOARGS, "For a process that was forked."},
    {"claim", ClaimWord, METH_O,
     "Writes this process's number to a word that has none, or that of a process that is gone."},
    {NULL, NULL, 0, NULL},
};

int AddWaits(PyObject* module) { return AddFunctions(module, kFunctions); }
