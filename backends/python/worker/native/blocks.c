// SPDX-License-Identifier: Apache-2.0
// The worker's own blocks in shared memory, in which it writes to the server.
//
// There is no lock. Python may collect garbage wherever its own code runs, and a destructor then
// tells the server something on a thread that is in the middle of anything; so may a signal's
// handler. Such a thread would wait for a lock that it holds itself. Here no Python object is made
// or let go and the interpreter's lock is kept, so nothing of Python runs in the middle of a step.
#include <stdlib.h>
#include <sys/mman.h>

#include "native.h"

enum { kPage = 4096, kClasses = 256, kLargeBlock = 1 << 20 };
// Freed blocks keep so much memory for later ones.
static const uint64_t kKeptBytes = (uint64_t)256 << 20;

typedef struct {
  uint64_t offset, size;
  int is_resident;  // of a free block: whether it still takes memory
} Chunk;
typedef struct {
  Chunk* chunks;
  size_t count, capacity;
} List;

static uint64_t next, limit;  // the part of the region that was never used
static List busy;             // the server sets their state to kBlockFree when it is done with them
static List unused[kClasses];
static uint64_t unused_bytes;

// Makes room for one more; 0 if there is no memory.
static int Reserve(List* list) {
  if (list->count < list->capacity) return 1;
  const size_t capacity = list->capacity * 2 + 16;
  Chunk* const chunks = realloc(list->chunks, capacity * sizeof(Chunk));
  if (chunks == NULL) return 0;
  list->chunks = chunks;
  list->capacity = capacity;
  return 1;
}

static int BitLength(uint64_t number) { return number == 0 ? 0 : 64 - __builtin_clzll(number); }

static uint64_t UnitOf(uint64_t size) {
  const uint64_t unit = (uint64_t)1 << (BitLength(size - 1) - 3);
  return unit < kPage ? kPage : unit;
}

// Rounds up to a block size: four for each power of two, so that freed blocks fit again.
static uint64_t RoundUp(uint64_t size) {
  if (size <= kPage) return kPage;
  const uint64_t unit = UnitOf(size);
  return (size + unit - 1) / unit * unit;
}

// Numbers the block sizes.
static size_t ClassOf(uint64_t size) {
  const int bits = BitLength(size - 1);
  return (size_t)bits * 4 + (size_t)((size - ((uint64_t)1 << (bits - 1)) - 1) / UnitOf(size));
}

// Moves blocks that the server has freed to the unused ones. One for which there is no memory stays
// until the next time.
static void Sweep(void) {
  size_t kept = 0;
  for (size_t i = 0; i < busy.count; ++i) {
    Chunk chunk = busy.chunks[i];
    List* const to = &unused[ClassOf(chunk.size)];
    if (atomic_load_explicit(&HeaderAt(chunk.offset)->state, memory_order_acquire) != kBlockFree ||
        !Reserve(to)) {
      busy.chunks[kept++] = chunk;
      continue;
    }
    const int is_too_much = chunk.size >= kLargeBlock && unused_bytes + chunk.size > kKeptBytes;
    chunk.is_resident =
        !is_too_much || madvise(region.base + chunk.offset, chunk.size, MADV_REMOVE) != 0;
    if (chunk.is_resident) unused_bytes += chunk.size;
    to->chunks[to->count++] = chunk;
  }
  busy.count = kept;
}

uint64_t TakeBlock(uint64_t size, uint64_t* whole) {
  const uint64_t wanted = size > region.size ? 0 : RoundUp(size + sizeof(BlockHeader));
  uint64_t offset = 0;
  if (wanted != 0) {
    List* const from = &unused[ClassOf(wanted)];
    if (from->count == 0) Sweep();
    if (from->count != 0) {
      const Chunk chunk = from->chunks[--from->count];
      if (chunk.is_resident) unused_bytes -= chunk.size;
      offset = chunk.offset;
    } else if (wanted <= limit - next) {
      offset = next;
      next += wanted;
    }
  }
  if (offset == 0) {
    PyErr_SetString(PyExc_MemoryError, "the memory shared with the server is exhausted");
    return 0;
  }
  atomic_store_explicit(&HeaderAt(offset)->state, kBlockInUse, memory_order_relaxed);
  *whole = wanted;
  return offset;
}

int LeaveBlock(uint64_t offset, uint64_t whole) {
  if (!Reserve(&busy)) {
    PyErr_NoMemory();
    return -1;
  }
  busy.chunks[busy.count++] = (Chunk){offset, whole, 1};
  return 0;
}

uint64_t TakeBlockForServer(uint64_t size) {
  // First, so that nothing can fail once there is a block.
  if (!Reserve(&busy)) {
    PyErr_NoMemory();
    return 0;
  }
  uint64_t whole = 0;
  const uint64_t offset = TakeBlock(size, &whole);
  if (offset != 0) LeaveBlock(offset, whole);
  return offset;
}

// allocate(size)
static PyObject* Allocate(PyObject* self, PyObject* size) {
  (void)self;
  const unsigned long long wanted = PyLong_AsUnsignedLongLong(size);
  if (PyErr_Occurred()) return NULL;
  const uint64_t offset = TakeBlockForServer(wanted);
  return offset == 0 ? NULL : PyLong_FromUnsignedLongLong(offset);
}

// use_blocks(begin, end)
static PyObject* UseBlocks(PyObject* self, PyObject* args) {
  (void)self;
  unsigned long long begin = 0, end = 0;
  if (!PyArg_ParseTuple(args, "KK", &begin, &end)) return NULL;
  if (begin % kPage != 0 || begin > end || end > region.size) {
    PyErr_SetString(PyExc_ValueError, "no part of the region");
    return NULL;
  }
  next = begin;
  limit = end;
  busy.count = 0;
  for (size_t i = 0; i < kClasses; ++i) unused[i].count = 0;
  unused_bytes = 0;
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"allocate", Allocate, METH_O,
     "The offset of a block with room for so many bytes after its header; free again once the "
     "server has said so."},
    {"use_blocks", UseBlocks, METH_VARARGS,
     "Says which part of the region blocks are made of, and forgets all that there were."},
    {NULL, NULL, 0, NULL},
};

int AddBlocks(PyObject* module) { return AddFunctions(module, kFunctions); }
