// SPDX-License-Identifier: Apache-2.0
// Batches and results: requests from the server become objects, and responses become records for
// the server. Unusual cases are left to Python.
#include <stdlib.h>
#include <string.h>

#include "native.h"

enum { kReleaseAll = 1 };

// Set by setup().
static PyObject* request_class;
static PyObject* read_form;       // (bytes) -> ([(name, type, shape, place, size)], outputs)
static PyObject* check_response;  // (tensors, error, parameters) -> the same, or an exception
static PyObject* no_parameters;
static PyObject* release_all;  // the flags of a request that is not rescheduled

// Arrays in memory of other models' responses, or of earlier batches, that the last result refers
// to: a list, or NULL. They stay until the next batch, because then the server has read the result.
static PyObject* lent;

// --- Requests ---

typedef struct {
  PyObject ob_base;
  PyObject* block;    // NULL for a request that the model made
  PyObject* data;     // the block with the inputs; NULL once the inputs hold it
  PyObject* form;     // the result of read_form
  PyObject* inputs;   // NULL until first used
  PyObject* outputs;  // names
  PyObject* flags;
  PyObject* release_flags;
  PyObject* sender;  // NULL until first used
  uint64_t payload;  // where offsets in the record start
  RequestRecord record;
} Request;
static PyTypeObject* request_base;

static int RequestTraverse(PyObject* self, visitproc visit, void* arg) {
  Request* const request = (Request*)self;
  Py_VISIT(request->block);
  Py_VISIT(request->data);
  Py_VISIT(request->inputs);
  Py_VISIT(request->outputs);
  Py_VISIT(request->sender);
  return 0;
}

static int RequestClear(PyObject* self) {
  Request* const request = (Request*)self;
  Py_CLEAR(request->block);
  Py_CLEAR(request->data);
  Py_CLEAR(request->form);
  Py_CLEAR(request->inputs);
  Py_CLEAR(request->outputs);
  Py_CLEAR(request->flags);
  Py_CLEAR(request->release_flags);
  Py_CLEAR(request->sender);
  return 0;
}

static void RequestFree(PyObject* self) {
  PyObject_GC_UnTrack(self);
  RequestClear(self);
  FreeObject(self);
}

static PyObject* MakeInputs(const Request* request) {
  PyObject* const tensors = PyTuple_GetItem(request->form, 0);
  if (tensors == NULL) return NULL;
  const Py_ssize_t count = PyList_Size(tensors);
  PyObject* const inputs = count < 0 ? NULL : PyList_New(count);
  if (inputs == NULL) return NULL;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *name = NULL, *shape = NULL;
    int type = 0;
    unsigned long long place = 0, size = 0;
    PyObject* tensor = NULL;
    if (PyArg_ParseTuple(PyList_GetItem(tensors, i), "OiOKK", &name, &type, &shape, &place,
                         &size)) {
      tensor = NewTensor(name, type, shape, request->data, request->record.data + place, size);
    }
    if (tensor == NULL) {
      Py_DECREF(inputs);
      return NULL;
    }
    PyList_SetItem(inputs, i, tensor);
  }
  return inputs;
}

// Returns a borrowed reference.
static PyObject* InputsOf(Request* request) {
  if (request->inputs != NULL) return request->inputs;
  if (request->form == NULL) {
    PyErr_SetString(PyExc_AttributeError, "the request was not initialized");
    return NULL;
  }
  request->inputs = MakeInputs(request);
  return request->inputs;
}

// A list of the caller's own: what the model does with it changes no request.
static PyObject* Inputs(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* const inputs = InputsOf((Request*)self);
  return inputs == NULL ? NULL : PySequence_List(inputs);
}

// _keep_sender(sender): the request's sender, which is this one if there was none. One step,
// because a thread of the model's may ask for the sender at the same time.
static PyObject* KeepSender(PyObject* self, PyObject* sender) {
  Request* const request = (Request*)self;
  if (request->sender == NULL || request->sender == Py_None) Keep(&request->sender, sender);
  Py_INCREF(request->sender);
  return request->sender;
}

// The handle of a request that the server sent; None for one that the model made.
static PyObject* Handle(PyObject* self, void* unused) {
  (void)unused;
  const Request* const request = (Request*)self;
  if (request->block == NULL) Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong(request->record.handle);
}

// _details(): correlation id, whether it is a text, timeout, and the four texts as bytes.
static PyObject* Details(PyObject* self, PyObject* unused) {
  (void)unused;
  const Request* const request = (Request*)self;
  if (request->block == NULL) Py_RETURN_NONE;
  const RequestRecord* const record = &request->record;
  const char* const at = region.base + request->payload;
  return Py_BuildValue(
      "KNKy#y#y#y#", (unsigned long long)record->correlation_id,
      PyBool_FromLong(record->has_correlation_text != 0), (unsigned long long)record->timeout_us,
      at + record->id, (Py_ssize_t)record->id_size, at + record->correlation_text,
      (Py_ssize_t)record->correlation_text_size, at + record->parameters,
      (Py_ssize_t)record->parameters_size, at + record->trace, (Py_ssize_t)record->trace_size);
}

static PyMethodDef kRequestMethods[] = {
    {"inputs", Inputs, METH_NOARGS, NULL},
    {"_details", Details, METH_NOARGS, NULL},
    {"_keep_sender", KeepSender, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef kRequestProperties[] = {
    {"_handle", Handle, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef kRequestMembers[] = {
    {"_inputs", T_OBJECT, offsetof(Request, inputs), 0, NULL},
    {"_outputs", T_OBJECT, offsetof(Request, outputs), 0, NULL},
    {"_flags", T_OBJECT, offsetof(Request, flags), 0, NULL},
    {"_release_flags", T_OBJECT, offsetof(Request, release_flags), 0, NULL},
    {"_sender", T_OBJECT, offsetof(Request, sender), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot kRequestSlots[] = {
    {Py_tp_dealloc, RequestFree},     {Py_tp_traverse, RequestTraverse},
    {Py_tp_clear, RequestClear},      {Py_tp_methods, kRequestMethods},
    {Py_tp_members, kRequestMembers}, {Py_tp_getset, kRequestProperties},
    {Py_tp_new, PyType_GenericNew},   {0, NULL},
};
static PyType_Spec kRequestSpec = {"nereid_python.native.Request", sizeof(Request), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                   kRequestSlots};

// Returns what read_form() makes of these bytes, which mostly equal those of the last call. A new
// reference.
static PyObject* FormOf(const char* bytes, uint32_t size) {
  static PyObject* last_bytes = NULL;
  static PyObject* last_form = NULL;
  if (last_bytes != NULL && PyBytes_Size(last_bytes) == (Py_ssize_t)size &&
      memcmp(PyBytes_AsString(last_bytes), bytes, size) == 0) {
    Py_INCREF(last_form);
    return last_form;
  }
  PyObject* const text = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
  if (text == NULL) return NULL;
  PyObject* const form = PyObject_CallFunctionObjArgs(read_form, text, NULL);
  if (form != NULL) {
    Keep(&last_bytes, text);
    Keep(&last_form, form);
  }
  Py_DECREF(text);
  return form;
}

static PyObject* MakeRequest(uint64_t payload, const RequestRecord* record, PyObject* block) {
  PyObject* const form = FormOf(region.base + payload + record->form, record->form_size);
  if (form == NULL) return NULL;
  const allocfunc make = (allocfunc)PyType_GetSlot((PyTypeObject*)request_class, Py_tp_alloc);
  Request* const request = (Request*)make((PyTypeObject*)request_class, 0);
  if (request == NULL) {
    Py_DECREF(form);
    return NULL;
  }
  request->form = form;
  Keep(&request->block, block);
  if (record->block == 0) {
    Keep(&request->data, block);
  } else {
    request->data = NewBlock(record->block);
    if (request->data == NULL) {
      Py_DECREF((PyObject*)request);
      return NULL;
    }
  }
  Keep(&request->outputs, PyTuple_GetItem(form, 1));
  request->flags = PyLong_FromUnsignedLong(record->flags);
  Keep(&request->release_flags, release_all);
  request->payload = payload;
  request->record = *record;
  return (PyObject*)request;
}

// read_batch(payload, block): the requests.
static PyObject* ReadBatch(PyObject* self, PyObject* args) {
  (void)self;
  unsigned long long payload = 0;
  PyObject* block = NULL;
  if (!PyArg_ParseTuple(args, "KO", &payload, &block)) return NULL;
  BeginBatch(block);
  Py_CLEAR(lent);
  const char* at = region.base + payload;
  BatchHeader header;
  memcpy(&header, at, sizeof(header));
  at += sizeof(header);
  PyObject* const batch = PyList_New(header.count);
  if (batch == NULL) return NULL;
  for (uint32_t i = 0; i < header.count; ++i, at += sizeof(RequestRecord)) {
    RequestRecord record;
    memcpy(&record, at, sizeof(record));
    PyObject* const request = MakeRequest(payload, &record, block);
    if (request == NULL) {
      Py_DECREF(batch);
      return NULL;
    }
    PyList_SetItem(batch, i, request);
  }
  return batch;
}

// get_input_tensor_by_name(inference_request, name)
static PyObject* GetInput(PyObject* self, PyObject* args, PyObject* keywords) {
  (void)self;
  static char* names[] = {"inference_request", "name", NULL};
  PyObject *request = NULL, *name = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:get_input_tensor_by_name", names, &request,
                                   &name)) {
    return NULL;
  }
  PyObject* inputs = NULL;
  if (PyObject_TypeCheck(request, request_base)) {
    inputs = InputsOf((Request*)request);
    Py_XINCREF(inputs);
  } else {
    inputs = PyObject_CallMethod(request, "inputs", NULL);
  }
  if (inputs == NULL) return NULL;
  PyObject* found = Py_None;
  const Py_ssize_t count = PyList_Size(inputs);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const tensor = PyList_GetItem(inputs, i);
    if (!PyObject_TypeCheck(tensor, tensor_base)) continue;
    PyObject* const its_name = NameOf((Tensor*)tensor);
    const int is_it = its_name == NULL ? -1 : PyObject_RichCompareBool(its_name, name, Py_EQ);
    if (is_it < 0) found = NULL;
    if (is_it > 0) found = tensor;
    if (is_it != 0) break;
  }
  if (count < 0) found = NULL;
  Py_XINCREF(found);
  Py_DECREF(inputs);
  return found;
}

// --- Responses ---

typedef struct {
  PyObject ob_base;
  PyObject* tensors;
  PyObject* error;
  PyObject* parameters;  // JSON
} Response;
static PyTypeObject* response_base;

static int ResponseTraverse(PyObject* self, visitproc visit, void* arg) {
  Response* const response = (Response*)self;
  Py_VISIT(response->tensors);
  Py_VISIT(response->error);
  return 0;
}

static int ResponseClear(PyObject* self) {
  Response* const response = (Response*)self;
  Py_CLEAR(response->tensors);
  Py_CLEAR(response->error);
  Py_CLEAR(response->parameters);
  return 0;
}

static void ResponseFree(PyObject* self) {
  PyObject_GC_UnTrack(self);
  ResponseClear(self);
  FreeObject(self);
}

static int HoldsTensorsOnly(PyObject* list) {
  const Py_ssize_t count = PyList_Size(list);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyObject_TypeCheck(PyList_GetItem(list, i), tensor_base)) return 0;
  }
  return 1;
}

static int ResponseInit(PyObject* self, PyObject* args, PyObject* keywords) {
  static char* names[] = {"output_tensors", "error", "parameters", NULL};
  PyObject *tensors = NULL, *error = Py_None, *parameters = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOO:InferenceResponse", names, &tensors,
                                   &error, &parameters)) {
    return -1;
  }
  Response* const response = (Response*)self;
  const int is_usual = tensors != NULL && PyList_CheckExact(tensors) && error == Py_None &&
                       parameters == Py_None && HoldsTensorsOnly(tensors);
  if (is_usual) {
    PyObject* const list = PyList_GetSlice(tensors, 0, PyList_Size(tensors));
    if (list == NULL) return -1;
    Keep(&response->tensors, list);
    Py_DECREF(list);
    Keep(&response->error, Py_None);
    Keep(&response->parameters, no_parameters);
    return 0;
  }
  PyObject* const none = tensors == NULL ? PyTuple_New(0) : NULL;
  PyObject* const checked = PyObject_CallFunctionObjArgs(
      check_response, none != NULL ? none : tensors, error, parameters, NULL);
  Py_XDECREF(none);
  if (checked == NULL) return -1;
  const int is_read = PyArg_ParseTuple(checked, "OOO", &tensors, &error, &parameters);
  if (is_read) {
    Keep(&response->tensors, tensors);
    Keep(&response->error, error);
    Keep(&response->parameters, parameters);
  }
  Py_DECREF(checked);
  return is_read ? 0 : -1;
}

static PyMemberDef kResponseMembers[] = {
    {"_tensors", T_OBJECT_EX, offsetof(Response, tensors), 0, NULL},
    {"_error", T_OBJECT, offsetof(Response, error), 0, NULL},
    {"_parameters", T_OBJECT_EX, offsetof(Response, parameters), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot kResponseSlots[] = {
    {Py_tp_init, ResponseInit},
    {Py_tp_dealloc, ResponseFree},
    {Py_tp_traverse, ResponseTraverse},
    {Py_tp_clear, ResponseClear},
    {Py_tp_members, kResponseMembers},
    {Py_tp_new, PyType_GenericNew},
    {0, NULL},
};
static PyType_Spec kResponseSpec = {"nereid_python.native.Response", sizeof(Response), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                    kResponseSlots};

// --- Results ---

// A piece of the result, collected before there is a block for it.
typedef struct {
  PyObject* name;  // bytes; NULL for the start of a response
  const Array* array;
  ResponseRecord response;
  TensorRecord tensor;
  const char* copied_from;  // NULL if it is shared, or has no bytes
} Piece;

// Confined to the thread that executes, like everything below.
static struct {
  Piece* pieces;
  size_t count, capacity;
  uint64_t meta_size, data_size;
} answer;
static uint64_t kept_block, kept_size;

static uint64_t Padded(uint64_t size) { return (size + 7) & ~(uint64_t)7; }
static uint64_t Aligned(uint64_t size) {
  return (size + kAlignment - 1) & ~(uint64_t)(kAlignment - 1);
}

static Piece* AddPiece(void) {
  if (answer.count == answer.capacity) {
    const size_t capacity = answer.capacity * 2 + 16;
    Piece* const pieces = realloc(answer.pieces, capacity * sizeof(Piece));
    if (pieces == NULL) {
      PyErr_NoMemory();
      return NULL;
    }
    answer.pieces = pieces;
    answer.capacity = capacity;
  }
  Piece* const piece = &answer.pieces[answer.count++];
  memset(piece, 0, sizeof(*piece));
  return piece;
}

static void ForgetPieces(void) {
  for (size_t i = 0; i < answer.count; ++i) {
    Py_XDECREF(answer.pieces[i].name);
    Py_XDECREF((PyObject*)answer.pieces[i].array);
  }
  answer.count = 0;
  answer.meta_size = answer.data_size = 0;
}

// Returns 1 if it was added, 0 if Python must handle it, -1 with an exception set.
static int AddTensor(Tensor* tensor) {
  if (tensor->type == kTypeBytes) return 0;
  PyObject* const values = ValuesOf(tensor);
  if (values == NULL) return -1;
  const Array* const array = (const Array*)values;
  // A model may have changed the array that it made the tensor from.
  if ((array->flags & kArrayContiguous) == 0 || !HasType(array, tensor->type)) return 0;
  PyObject* const name = PyUnicode_AsUTF8String(tensor->name);
  if (name == NULL) return -1;
  Piece* const piece = AddPiece();
  if (piece == NULL) {
    Py_DECREF(name);
    return -1;
  }
  const uint64_t size = ByteSizeOf(array, tensor->type);
  const uint64_t offset = (uint64_t)(array->data - region.base);
  const int is_shared = size > kSmall && offset < region.size && size <= region.size - offset;
  if (is_shared && !IsOfBatch(array)) {
    if (lent == NULL) lent = PyList_New(0);
    if (lent == NULL || PyList_Append(lent, values) != 0) return -1;
  }
  const uint32_t name_size = (uint32_t)PyBytes_Size(name);
  piece->name = name;
  Py_INCREF(values);
  piece->array = array;
  piece->tensor = (TensorRecord){(uint32_t)tensor->type,
                                 (uint32_t)array->nd,
                                 name_size,
                                 0,
                                 is_shared ? offset : answer.data_size,
                                 size};
  piece->copied_from = is_shared || size == 0 ? NULL : array->data;
  answer.meta_size += sizeof(TensorRecord) + 8 * (uint64_t)array->nd + Padded(name_size);
  if (piece->copied_from != NULL) answer.data_size += Aligned(size);
  return 1;
}

static int AddResponse(const Request* request, const Response* response) {
  const size_t start = answer.count;
  if (AddPiece() == NULL) return -1;
  answer.meta_size += sizeof(ResponseRecord);
  uint32_t wanted = 0;
  const Py_ssize_t count = PyList_Size(response->tensors);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const tensor = PyList_GetItem(response->tensors, i);
    if (!PyObject_TypeCheck(tensor, tensor_base)) return 0;
    PyObject* const name = NameOf((Tensor*)tensor);
    const int is_wanted = name == NULL ? -1 : PySet_Contains(request->outputs, name);
    if (is_wanted < 0) return -1;
    if (is_wanted == 0) continue;
    const int added = AddTensor((Tensor*)tensor);
    if (added != 1) return added;
    ++wanted;
  }
  answer.pieces[start].response = (ResponseRecord){ResponseKind_kTensors, kReleaseAll, wanted, 0};
  return 1;
}

static int IsUsual(PyObject* request, PyObject* response) {
  if (!PyObject_TypeCheck(request, request_base) || !PyObject_TypeCheck(response, response_base)) {
    return 0;
  }
  const Request* const from = (const Request*)request;
  const Response* const to = (const Response*)response;
  return from->block != NULL && (from->sender == NULL || from->sender == Py_None) &&
         from->release_flags == release_all && to->error == Py_None &&
         to->parameters == no_parameters && to->tensors != NULL && PyList_CheckExact(to->tensors);
}

// Returns a block with room for `size` bytes; 0 with an exception set. Usually that of the last
// result serves again.
static uint64_t BlockFor(uint64_t size) {
  enum { kMaxKept = 1 << 20 };
  if (kept_block != 0 && kept_size >= size + sizeof(BlockHeader) &&
      atomic_load_explicit(&HeaderAt(kept_block)->state, memory_order_acquire) == kBlockFree) {
    atomic_store_explicit(&HeaderAt(kept_block)->state, kBlockInUse, memory_order_relaxed);
    return kept_block;
  }
  if (size > kMaxKept) return TakeBlockForServer(size);
  uint64_t whole = 0;
  const uint64_t block = TakeBlock(size, &whole);
  if (block == 0 || (kept_block != 0 && LeaveBlock(kept_block, kept_size) != 0)) return 0;
  kept_block = block;
  kept_size = whole;
  return block;
}

static char* Put(char* to, const void* from, size_t size) {
  memcpy(to, from, size);
  return to + size;
}

static void WritePieces(uint64_t start) {
  enum { kLarge = 1 << 18 };  // while so much is copied, other threads may run
  char* to = region.base + start;
  const uint64_t data_at = start + Aligned(answer.meta_size);
  PyThreadState* const released = answer.data_size >= kLarge ? PyEval_SaveThread() : NULL;
  for (size_t i = 0; i < answer.count; ++i) {
    Piece* const piece = &answer.pieces[i];
    if (piece->name == NULL) {
      to = Put(to, &piece->response, sizeof(piece->response));
      continue;
    }
    TensorRecord* const tensor = &piece->tensor;
    if (piece->copied_from != NULL) {
      tensor->data += data_at;
      memcpy(region.base + tensor->data, piece->copied_from, tensor->byte_size);
    }
    to = Put(to, tensor, sizeof(*tensor));
    for (int dim = 0; dim < piece->array->nd; ++dim) {
      const int64_t size = piece->array->dimensions[dim];
      to = Put(to, &size, sizeof(size));
    }
    to = Put(to, PyBytes_AsString(piece->name), tensor->name_size);
    const uint64_t padding = Padded(tensor->name_size) - tensor->name_size;
    memset(to, 0, padding);
    to += padding;
  }
  if (released != NULL) PyEval_RestoreThread(released);
}

// write_responses(batch, responses): block and size of its contents, or None if Python must handle
// it.
static PyObject* WriteResponses(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *batch = NULL, *responses = NULL;
  if (!PyArg_ParseTuple(args, "OO", &batch, &responses)) return NULL;
  if (!PyList_CheckExact(batch) || !PyList_CheckExact(responses)) Py_RETURN_NONE;
  const Py_ssize_t count = PyList_Size(batch);
  if (PyList_Size(responses) != count) Py_RETURN_NONE;
  int added = 1;
  for (Py_ssize_t i = 0; i < count && added == 1; ++i) {
    PyObject* const request = PyList_GetItem(batch, i);
    PyObject* const response = PyList_GetItem(responses, i);
    added = IsUsual(request, response) ? AddResponse((Request*)request, (Response*)response) : 0;
  }
  PyObject* result = NULL;
  if (added == 1) {
    const uint64_t block = BlockFor(Aligned(answer.meta_size) + answer.data_size);
    if (block != 0) {
      const uint64_t size = Aligned(answer.meta_size) + answer.data_size;
      HeaderAt(block)->size = size;
      WritePieces(block + sizeof(BlockHeader));
      result = Py_BuildValue("KK", (unsigned long long)block, (unsigned long long)answer.meta_size);
    }
  } else if (added == 0) {
    Py_INCREF(Py_None);
    result = Py_None;
  }
  ForgetPieces();
  return result;
}

// setup_messages(request class, read_form, check_response, no_parameters, release_all)
static PyObject* Setup(PyObject* self, PyObject* args) {
  (void)self;
  PyObject** const places[] = {&request_class, &read_form, &check_response, &no_parameters,
                               &release_all};
  enum { kCount = sizeof(places) / sizeof(places[0]) };
  if (PyTuple_Size(args) != kCount) {
    PyErr_SetString(PyExc_TypeError, "setup_messages: wrong number of arguments");
    return NULL;
  }
  for (int i = 0; i < kCount; ++i) Keep(places[i], PyTuple_GetItem(args, i));
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"setup_messages", Setup, METH_VARARGS, NULL},
    {"read_batch", ReadBatch, METH_VARARGS, NULL},
    {"write_responses", WriteResponses, METH_VARARGS, NULL},
    {"get_input_tensor_by_name", (PyCFunction)(void (*)(void))GetInput,
     METH_VARARGS | METH_KEYWORDS, "The input of this name, or None."},
    {NULL, NULL, 0, NULL},
};

int AddMessages(PyObject* module) {
  request_base = AddType(module, &kRequestSpec, "Request");
  response_base = AddType(module, &kResponseSpec, "Response");
  if (request_base == NULL || response_base == NULL) return -1;
  return AddFunctions(module, kFunctions);
}
