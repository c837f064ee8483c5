// SPDX-License-Identifier: Apache-2.0
// Gives Python the numbers of layout.def, so that they are written down once: constants and
// enumerators as integers of the module, and LAYOUT, which has the size and the fields of each
// record: {record: (size, {field: (offset, size, code)})}. The code is that of Python's struct
// module, and empty if the field is not a number.
#include "native.h"

#define NEREID_FIELD(record, offset, type, name) \
  _Static_assert(offsetof(record, name) == offset, #record "." #name);
#define NEREID_ARRAY(record, offset, type, name, count) \
  _Static_assert(offsetof(record, name) == offset, #record "." #name);
#define NEREID_RECORD_END(record, length) _Static_assert(sizeof(record) == length, #record);
#include "python_backend/layout.def"

typedef struct {
  const char* name;
  long value;
} Number;
static const Number kNumbers[] = {
#define NEREID_CONSTANT(name, python, value) {#python, value},
#define NEREID_VALUE(type, name, python, value) {#python, value},
#include "python_backend/layout.def"
};

// A field; or a record if `field` is NULL. The fields of a record precede it.
typedef struct {
  const char* record;
  const char* field;
  Py_ssize_t offset, size;
  const char* code;
} Place;
#define CODE_OF(value) _Generic((value), uint32_t: "I", uint64_t: "Q", int64_t: "q", default: "")
static const Place kPlaces[] = {
#define NEREID_FIELD(record, offset, type, name) \
  {#record, #name, offsetof(record, name), sizeof(((record*)0)->name), CODE_OF(((record*)0)->name)},
#define NEREID_ARRAY(record, offset, type, name, count) \
  {#record, #name, offsetof(record, name), sizeof(((record*)0)->name), ""},
#define NEREID_RECORD_END(record, length) {#record, NULL, 0, sizeof(record), NULL},
#include "python_backend/layout.def"
};

// Adds a value to a dictionary, which then owns it; -1 with an exception set.
static int Add(PyObject* to, const char* name, PyObject* value) {
  if (value == NULL) return -1;
  const int added = PyDict_SetItemString(to, name, value);
  Py_DECREF(value);
  return added;
}

static int FillRecords(PyObject* records) {
  PyObject* fields = NULL;
  for (size_t i = 0; i < sizeof(kPlaces) / sizeof(kPlaces[0]); ++i) {
    const Place* const place = &kPlaces[i];
    if (fields == NULL) fields = PyDict_New();
    if (fields == NULL) return -1;
    int added = 0;
    if (place->field != NULL) {
      added =
          Add(fields, place->field, Py_BuildValue("nns", place->offset, place->size, place->code));
    } else {
      added = Add(records, place->record, Py_BuildValue("nN", place->size, fields));
      fields = NULL;
    }
    if (added != 0) {
      Py_XDECREF(fields);
      return -1;
    }
  }
  return 0;
}

int AddLayout(PyObject* module) {
  for (size_t i = 0; i < sizeof(kNumbers) / sizeof(kNumbers[0]); ++i) {
    if (PyModule_AddIntConstant(module, kNumbers[i].name, kNumbers[i].value) != 0) return -1;
  }
  PyObject* const records = PyDict_New();
  if (records == NULL) return -1;
  if (FillRecords(records) != 0 || PyModule_AddObject(module, "LAYOUT", records) != 0) {
    Py_DECREF(records);
    return -1;
  }
  return 0;
}
