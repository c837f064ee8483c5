// SPDX-License-Identifier: Apache-2.0
#include "native.h"

Region region;
uint32_t generation;

int AddFunctions(PyObject* module, PyMethodDef* functions) {
  return PyModule_AddFunctions(module, functions);
}

PyTypeObject* AddType(PyObject* module, PyType_Spec* spec, const char* name) {
  PyObject* const type = PyType_FromSpec(spec);
  if (type == NULL) return NULL;
  Py_INCREF(type);  // owned by the module for ever
  if (PyModule_AddObject(module, name, type) != 0) return NULL;
  return (PyTypeObject*)type;
}

void Keep(PyObject** place, PyObject* value) {
  PyObject* const old = *place;
  Py_XINCREF(value);
  *place = value;
  Py_XDECREF(old);
}

void FreeObject(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// open(address, size, spin_ns)
static PyObject* Open(PyObject* self, PyObject* args) {
  (void)self;
  unsigned long long address = 0, size = 0;
  long long spin_ns = 0;
  if (!PyArg_ParseTuple(args, "KKL", &address, &size, &spin_ns)) return NULL;
  region = (Region){(char*)(uintptr_t)address, size, spin_ns};
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"open", Open, METH_VARARGS, "Tells where the memory shared with the server is."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT, "native", NULL, -1, kFunctions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_native(void) {
  PyObject* const module = PyModule_Create(&kModule);
  if (module == NULL) return NULL;
  if (AddLayout(module) != 0 || AddWaits(module) != 0 || AddBlocks(module) != 0 ||
      AddTensors(module) != 0 || AddMessages(module) != 0) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
