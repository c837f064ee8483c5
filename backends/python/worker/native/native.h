// SPDX-License-Identifier: Apache-2.0
// The C part of the worker: what happens for every request, and what Python cannot do. One module,
// `nereid_python.native`, for every CPython from 3.8 on: it uses only the stable ABI.
//
// Everything here is confined to the thread that holds the interpreter's lock, except for the words
// in shared memory that the server reads and writes at the same time.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

// --- Shared memory: the records and numbers of layout.def ---

typedef _Atomic uint32_t Word;

// clang-format off
#define NEREID_CONSTANT(name, python, value) enum { name = value };
#define NEREID_ENUM(type) enum {
#define NEREID_VALUE(type, name, python, value) type##_##name = value,
#define NEREID_ENUM_END(type) };
#define NEREID_RECORD(record, alignment) typedef struct NEREID_ALIGNED(alignment) {
#define NEREID_FIELD(record, offset, type, name) type name;
#define NEREID_ARRAY(record, offset, type, name, count) type name[count];
#define NEREID_RECORD_END(record, size) } record;
// clang-format on
#include "python_backend/layout.def"

// Smaller tensors are copied instead of being searched for in shared memory.
enum { kSmall = 4096 };

typedef struct {
  char* base;
  uint64_t size;
  int64_t spin_ns;  // how long to poll before going to sleep
} Region;
extern Region region;
// How many times this process was forked from the worker.
extern uint32_t generation;

static inline Word* WordAt(uint64_t offset) { return (Word*)(region.base + offset); }
static inline Control* ControlOf(void) { return (Control*)region.base; }
static inline BlockHeader* HeaderAt(uint64_t offset) {
  return (BlockHeader*)(region.base + offset);
}

// --- numpy, by the table that it exports; ../nereid_python/tensors.py hands it over ---

// The beginning of an array, which is the same in all versions of numpy.
typedef struct {
  PyObject ob_base;
  char* data;
  int nd;
  intptr_t* dimensions;
  intptr_t* strides;
  PyObject* base;
  PyObject* descr;
  int flags;
} Array;
enum { kArrayContiguous = 0x1, kArrayWriteable = 0x400, kArrayAligned = 0x100 };

enum { kTypes = 16, kTypeBytes = 13, kTypeBf16 = 14 };

int IsArray(PyObject* object);
int HasType(const Array* array, int type);
uint64_t ByteSizeOf(const Array* array, int type);

// --- The worker's own blocks ---

// Returns the offset of a block with room for `size` bytes after its header; 0 with an exception
// set. It stays in use until LeaveBlock(), and *whole is its size with the header.
uint64_t TakeBlock(uint64_t size, uint64_t* whole);
// Leaves such a block to the server, which frees it. -1 with an exception set.
int LeaveBlock(uint64_t offset, uint64_t whole);
// Does both.
uint64_t TakeBlockForServer(uint64_t size);

// --- Tensors ---

typedef struct {
  PyObject ob_base;
  PyObject* name;
  PyObject* shape;  // NULL if there is an array, unless it has texts
  PyObject* array;  // NULL until first used, if there is a place
  PyObject* texts;  // the elements of an array of texts, encoded when the tensor was made; or NULL
  PyObject* block;  // NULL or None if nothing is held
  uint64_t at;      // offset of the bytes in the region
  uint64_t byte_size;
  int type;
} Tensor;
extern PyTypeObject* tensor_base;

// Makes a pb_utils.Tensor of what the server describes. NULL with an exception set.
PyObject* NewTensor(PyObject* name, int type, PyObject* shape, PyObject* block, uint64_t at,
                    uint64_t byte_size);
// Begins a batch: this block is of it, and so are those that NewBlock makes until the next one.
void BeginBatch(PyObject* block);
// Makes an object that holds the block of the server whose payload is at `at`; NULL with an
// exception set.
PyObject* NewBlock(uint64_t at);
// Returns whether the array is a view of a block of the batch, which the server holds until it has
// read the result.
int IsOfBatch(const Array* array);
// Returns its name, borrowed; NULL with an exception set if __init__ was not called.
PyObject* NameOf(const Tensor* tensor);
// Returns the array with the tensor's values, borrowed; NULL with an exception set.
PyObject* ValuesOf(Tensor* tensor);

// --- The parts of the module. Each function adds one; -1 with an exception set ---

int AddLayout(PyObject* module);
int AddWaits(PyObject* module);
int AddBlocks(PyObject* module);
int AddTensors(PyObject* module);
int AddMessages(PyObject* module);

int AddFunctions(PyObject* module, PyMethodDef* functions);
PyTypeObject* AddType(PyObject* module, PyType_Spec* spec, const char* name);
// Replaces what *place holds by a new reference to `value`.
void Keep(PyObject** place, PyObject* value);
// Frees an object of one of our types, whose fields are cleared.
void FreeObject(PyObject* self);
