// SPDX-License-Identifier: Apache-2.0
// Blocks of the server that are held, and the tensors in them. Rare cases are left to Python.
#include <string.h>

#include "native.h"

PyTypeObject* tensor_base;

// Set by setup().
static void** numpy;              // its table of functions
static PyObject* dtypes[kTypes];  // by the numbers of data types; NULL for none
static PyObject* tensor_class;    // pb_utils.Tensor
static PyObject* convert;         // (name, array) -> (name, type, array), or an exception
static PyObject* read_texts;      // (bytes, shape) -> array
static PyObject* write_texts;     // (array) -> bytes, or an exception

static const uint8_t kElementSizes[kTypes] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2, 0};

// Indices in numpy's table, unchanged since 1.7.
enum { kArrayType = 2, kNewFromDescr = 94, kSetBaseObject = 282 };
typedef PyObject* (*NewFromDescr)(PyTypeObject*, PyObject*, int, const intptr_t*, const intptr_t*,
                                  void*, int, PyObject*);
typedef int (*SetBaseObject)(PyObject*, PyObject*);

int IsArray(PyObject* object) {
  return PyObject_TypeCheck(object, (PyTypeObject*)numpy[kArrayType]);
}

int HasType(const Array* array, int type) { return array->descr == dtypes[type]; }

uint64_t ByteSizeOf(const Array* array, int type) {
  uint64_t size = kElementSizes[type];
  for (int i = 0; i < array->nd; ++i) size *= (uint64_t)array->dimensions[i];
  return size;
}

// --- Blocks ---

typedef struct {
  PyObject ob_base;
  uint64_t at;     // offset of the payload
  uint64_t batch;  // the number of the batch that it is of; 0 for a response of another model
  uint32_t generation;
} Block;
static PyTypeObject* block_type;
static uint64_t last_batch;

static int BlockInit(PyObject* self, PyObject* args, PyObject* keywords) {
  (void)keywords;
  unsigned long long at = 0;
  if (!PyArg_ParseTuple(args, "K", &at)) return -1;
  ((Block*)self)->at = at;
  ((Block*)self)->generation = generation;
  return 0;
}

PyObject* NewBlock(uint64_t at) {
  Block* const block = (Block*)((allocfunc)PyType_GetSlot(block_type, Py_tp_alloc))(block_type, 0);
  if (block == NULL) return NULL;
  block->at = at;
  block->batch = last_batch;
  block->generation = generation;
  return (PyObject*)block;
}

void BeginBatch(PyObject* block) {
  ++last_batch;
  if (PyObject_TypeCheck(block, block_type)) ((Block*)block)->batch = last_batch;
}

int IsOfBatch(const Array* array) {
  PyObject* base = array->base;
  while (base != NULL && IsArray(base)) base = ((Array*)base)->base;
  return base != NULL && PyObject_TypeCheck(base, block_type) &&
         ((Block*)base)->batch == last_batch;
}

static void BlockFree(PyObject* self) {
  const uint64_t at = ((Block*)self)->at;
  // A forked process has copies of what its parent holds.
  if (at != 0 && ((Block*)self)->generation == generation)
    atomic_store_explicit(&HeaderAt(at - sizeof(BlockHeader))->state, kBlockFree,
                          memory_order_release);
  FreeObject(self);
}

static PyType_Slot kBlockSlots[] = {
    {Py_tp_init, BlockInit},
    {Py_tp_dealloc, BlockFree},
    {Py_tp_doc,
     "Holds a block of the server's, by where its payload is, and lets it go at its end."},
    {0, NULL},
};
static PyType_Spec kBlockSpec = {"nereid_python.native.Block", sizeof(Block), 0, Py_TPFLAGS_DEFAULT,
                                 kBlockSlots};

// --- Tensors ---

static int TensorTraverse(PyObject* self, visitproc visit, void* arg) {
  Tensor* const tensor = (Tensor*)self;
  Py_VISIT(tensor->array);
  Py_VISIT(tensor->block);
  return 0;
}

static int TensorClear(PyObject* self) {
  Tensor* const tensor = (Tensor*)self;
  Py_CLEAR(tensor->name);
  Py_CLEAR(tensor->shape);
  Py_CLEAR(tensor->array);
  Py_CLEAR(tensor->texts);
  Py_CLEAR(tensor->block);
  return 0;
}

static void TensorFree(PyObject* self) {
  PyObject_GC_UnTrack(self);
  TensorClear(self);
  FreeObject(self);
}

static int TypeOf(PyObject* array) {
  const PyObject* const descr = ((Array*)array)->descr;
  for (int type = 1; type <= kTypeBytes; ++type) {
    if (dtypes[type] == descr) return type;
  }
  return 0;
}

// Returns the data type of the array if name and array can be used as they are, otherwise 0.
static int UsualType(PyObject* name, PyObject* array) {
  if (!PyUnicode_CheckExact(name) || PyUnicode_GetLength(name) == 0 || !IsArray(array)) return 0;
  return (((Array*)array)->flags & kArrayContiguous) != 0 ? TypeOf(array) : 0;
}

static PyObject* ShapeOf(const Array* array) {
  PyObject* const shape = PyTuple_New(array->nd);
  for (int i = 0; shape != NULL && i < array->nd; ++i) {
    PyObject* const size = PyLong_FromLongLong(array->dimensions[i]);
    if (size == NULL || PyTuple_SetItem(shape, i, size) != 0) {
      Py_DECREF(shape);
      return NULL;
    }
  }
  return shape;
}

// Returns the text of an element of an array as bytes, a new reference. NULL, perhaps without an
// exception, if it is something else.
static PyObject* Encoded(PyObject* element) {
  if (element == NULL) return NULL;  // None in an array that nothing was written into
  if (PyUnicode_CheckExact(element)) return PyUnicode_AsUTF8String(element);
  if (!PyBytes_CheckExact(element)) return NULL;
  Py_INCREF(element);
  return element;
}

// Encodes the elements of a contiguous array of objects, each after its length. NULL, perhaps
// without an exception, unless all of them are texts.
static PyObject* JoinTexts(const Array* array) {
  Py_ssize_t count = 1, size = 0;
  for (int i = 0; i < array->nd; ++i) count *= array->dimensions[i];
  PyObject* const parts = PyTuple_New(count);
  if (parts == NULL) return NULL;
  int are_texts = 1;
  for (Py_ssize_t i = 0; are_texts && i < count; ++i) {
    PyObject* element = NULL;
    memcpy(&element, array->data + (size_t)i * sizeof(element), sizeof(element));
    PyObject* const text = Encoded(element);
    const Py_ssize_t length = text == NULL ? -1 : PyBytes_Size(text);
    are_texts = length >= 0 && length <= UINT32_MAX;
    if (text != NULL) PyTuple_SetItem(parts, i, text);
    size += (Py_ssize_t)sizeof(uint32_t) + length;
  }
  PyObject* const texts = are_texts ? PyBytes_FromStringAndSize(NULL, size) : NULL;
  char* to = texts == NULL ? NULL : PyBytes_AsString(texts);
  for (Py_ssize_t i = 0; to != NULL && i < count; ++i) {
    PyObject* const text = PyTuple_GetItem(parts, i);
    const uint32_t length = (uint32_t)PyBytes_Size(text);
    memcpy(to, &length, sizeof(length));
    memcpy(to + sizeof(length), PyBytes_AsString(text), length);
    to += sizeof(length) + length;
  }
  Py_DECREF(parts);
  return texts;
}

static PyObject* WriteTexts(PyObject* array) {
  PyObject* const texts =
      HasType((Array*)array, kTypeBytes) ? JoinTexts((const Array*)array) : NULL;
  if (texts != NULL || PyErr_Occurred()) return texts;
  return PyObject_CallFunctionObjArgs(write_texts, array, NULL);
}

// Makes the tensor one of this array. The texts in it are encoded now, because a model may use the
// array for its next tensor before this one is sent. -1 with an exception set.
static int InitFrom(Tensor* tensor, PyObject* name, int type, PyObject* array) {
  PyObject *shape = NULL, *texts = NULL;
  if (type == kTypeBytes) {
    shape = ShapeOf((const Array*)array);
    if (shape != NULL) texts = WriteTexts(array);
    if (texts == NULL) {
      Py_XDECREF(shape);
      return -1;
    }
  }
  Keep(&tensor->name, name);
  Keep(&tensor->shape, shape);
  Keep(&tensor->array, array);
  Keep(&tensor->texts, texts);
  Keep(&tensor->block, NULL);
  tensor->type = type;
  Py_XDECREF(shape);
  Py_XDECREF(texts);
  return 0;
}

static int TensorInit(PyObject* self, PyObject* args, PyObject* keywords) {
  static char* names[] = {"name", "numpy_array", NULL};
  PyObject* name = NULL;
  PyObject* array = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:Tensor", names, &name, &array)) return -1;
  int type = UsualType(name, array);
  if (type != 0) return InitFrom((Tensor*)self, name, type, array);
  PyObject* const converted = PyObject_CallFunctionObjArgs(convert, name, array, NULL);
  if (converted == NULL) return -1;
  const int is_read = PyArg_ParseTuple(converted, "OiO", &name, &type, &array);
  const int result = is_read ? InitFrom((Tensor*)self, name, type, array) : -1;
  Py_DECREF(converted);
  return result;
}

static Tensor* Allocate(PyObject* type) {
  return (Tensor*)((allocfunc)PyType_GetSlot((PyTypeObject*)type, Py_tp_alloc))((PyTypeObject*)type,
                                                                                0);
}

PyObject* NewTensor(PyObject* name, int type, PyObject* shape, PyObject* block, uint64_t at,
                    uint64_t byte_size) {
  if (type <= 0 || type > kTypeBf16 || !PyTuple_Check(shape) || PyTuple_Size(shape) > kMaxDims) {
    PyErr_SetString(PyExc_ValueError, "a tensor that cannot be read");
    return NULL;
  }
  Tensor* const tensor = Allocate(tensor_class);
  if (tensor == NULL) return NULL;
  Keep(&tensor->name, name);
  Keep(&tensor->shape, shape);
  Keep(&tensor->block, block);
  tensor->type = type;
  tensor->at = at;
  tensor->byte_size = byte_size;
  return (PyObject*)tensor;
}

// _in_block(name, type, shape, block, at, byte_size): a class method.
static PyObject* InBlock(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *name = NULL, *shape = NULL, *block = NULL;
  int type = 0;
  unsigned long long at = 0, byte_size = 0;
  if (!PyArg_ParseTuple(args, "OiOOKK", &name, &type, &shape, &block, &at, &byte_size)) return NULL;
  return NewTensor(name, type, shape, block, at, byte_size);
}

// _of_array(name, type, array): a tensor with the array's data, which may have another type.
static PyObject* OfArray(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *name = NULL, *array = NULL;
  int type = 0;
  if (!PyArg_ParseTuple(args, "OiO", &name, &type, &array)) return NULL;
  Tensor* const tensor = Allocate(tensor_class);
  if (tensor == NULL) return NULL;
  Keep(&tensor->name, name);
  Keep(&tensor->array, array);
  tensor->type = type;
  return (PyObject*)tensor;
}

static PyObject* ReadTexts(const Tensor* tensor) {
  PyObject* const bytes = PyBytes_FromStringAndSize(
      tensor->byte_size == 0 ? NULL : region.base + tensor->at, (Py_ssize_t)tensor->byte_size);
  if (bytes == NULL) return NULL;
  PyObject* const array = PyObject_CallFunctionObjArgs(read_texts, bytes, tensor->shape, NULL);
  Py_DECREF(bytes);
  return array;
}

static PyObject* ViewBytes(const Tensor* tensor) {
  intptr_t dims[kMaxDims];
  const int count = (int)PyTuple_Size(tensor->shape);
  uint64_t size = kElementSizes[tensor->type];
  int overflows = 0;
  for (int i = 0; i < count; ++i) {
    dims[i] = (intptr_t)PyLong_AsLongLong(PyTuple_GetItem(tensor->shape, i));
    overflows |= __builtin_mul_overflow(size, (uint64_t)dims[i], &size);
  }
  if (PyErr_Occurred()) return NULL;
  if (overflows || size > tensor->byte_size) {
    PyErr_Format(PyExc_ValueError, "tensor '%U' has fewer bytes than its shape says", tensor->name);
    return NULL;
  }
  char* const data = size == 0 ? NULL : region.base + tensor->at;
  const int flags = data == NULL ? 0 : kArrayContiguous | kArrayAligned | kArrayWriteable;
  PyObject* const descr = dtypes[tensor->type];
  Py_INCREF(descr);  // the array steals a reference
  PyObject* const array = ((NewFromDescr)numpy[kNewFromDescr])(
      (PyTypeObject*)numpy[kArrayType], descr, count, dims, NULL, data, flags, NULL);
  if (array == NULL || data == NULL || tensor->block == NULL) return array;
  Py_INCREF(tensor->block);  // the array steals a reference
  if (((SetBaseObject)numpy[kSetBaseObject])(array, tensor->block) == 0) return array;
  Py_DECREF(array);
  return NULL;
}

static PyObject* NotInitialized(void) {
  PyErr_SetString(PyExc_AttributeError, "the tensor was not initialized");
  return NULL;
}

PyObject* NameOf(const Tensor* tensor) {
  return tensor->name != NULL ? tensor->name : NotInitialized();
}

PyObject* ValuesOf(Tensor* tensor) {
  if (tensor->array != NULL) return tensor->array;
  if (tensor->shape == NULL) return NotInitialized();
  tensor->array = tensor->type == kTypeBytes ? ReadTexts(tensor) : ViewBytes(tensor);
  return tensor->array;
}

static PyObject* Values(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* const array = ValuesOf((Tensor*)self);
  Py_XINCREF(array);
  return array;
}

static PyObject* Name(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* const name = ((Tensor*)self)->name;
  if (name == NULL) Py_RETURN_NONE;
  Py_INCREF(name);
  return name;
}

static PyObject* Shape(PyObject* self, PyObject* unused) {
  (void)unused;
  const Tensor* const tensor = (Tensor*)self;
  if (tensor->shape != NULL) return PySequence_List(tensor->shape);
  if (tensor->array == NULL) return PyList_New(0);
  PyObject* const shape = PyObject_GetAttrString(tensor->array, "shape");
  if (shape == NULL) return NULL;
  PyObject* const list = PySequence_List(shape);
  Py_DECREF(shape);
  return list;
}

static PyObject* Type(PyObject* self, PyObject* unused) {
  (void)unused;
  return PyLong_FromLong(((Tensor*)self)->type);
}

static PyMethodDef kTensorMethods[] = {
    {"_in_block", InBlock, METH_VARARGS | METH_STATIC, NULL},
    {"_of_array", OfArray, METH_VARARGS | METH_STATIC, NULL},
    {"_values", Values, METH_NOARGS, "The array; of a BF16 tensor, its bits."},
    {"name", Name, METH_NOARGS, NULL},
    {"shape", Shape, METH_NOARGS, NULL},
    {"triton_dtype", Type, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef kTensorMembers[] = {
    {"_name", T_OBJECT_EX, offsetof(Tensor, name), READONLY, NULL},
    {"_type", T_INT, offsetof(Tensor, type), READONLY, NULL},
    {"_shape", T_OBJECT, offsetof(Tensor, shape), READONLY, NULL},
    {"_texts", T_OBJECT, offsetof(Tensor, texts), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot kTensorSlots[] = {
    {Py_tp_init, TensorInit},         {Py_tp_dealloc, TensorFree},
    {Py_tp_traverse, TensorTraverse}, {Py_tp_clear, TensorClear},
    {Py_tp_methods, kTensorMethods},  {Py_tp_members, kTensorMembers},
    {Py_tp_new, PyType_GenericNew},   {0, NULL},
};
static PyType_Spec kTensorSpec = {"nereid_python.native.Tensor", sizeof(Tensor), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                  kTensorSlots};

// setup_tensors(table, {type: dtype}, class, convert, read_texts, write_texts)
static PyObject* Setup(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *table = NULL, *types = NULL, *class = NULL;
  PyObject *converts = NULL, *reads = NULL, *writes = NULL;
  if (!PyArg_ParseTuple(args, "OO!OOOO", &table, &PyDict_Type, &types, &class, &converts, &reads,
                        &writes)) {
    return NULL;
  }
  numpy = PyCapsule_GetPointer(table, NULL);
  if (numpy == NULL) return NULL;
  PyObject *key = NULL, *dtype = NULL;
  for (Py_ssize_t at = 0; PyDict_Next(types, &at, &key, &dtype);) {
    const long type = PyLong_AsLong(key);
    if (type > 0 && type < kTypes) Keep(&dtypes[type], dtype);
  }
  Keep(&tensor_class, class);
  Keep(&convert, converts);
  Keep(&read_texts, reads);
  Keep(&write_texts, writes);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"setup_tensors", Setup, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int AddTensors(PyObject* module) {
  block_type = AddType(module, &kBlockSpec, "Block");
  tensor_base = AddType(module, &kTensorSpec, "Tensor");
  if (block_type == NULL || tensor_base == NULL) return -1;
  return AddFunctions(module, kFunctions);
}
