// SPDX-License-Identifier: Apache-2.0
#include "inputs.h"

#include <vector>

#include <pybind11/gil_safe_call_once.h>

#include "errors.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

TRITONSERVER_DataType IntegerType(bool is_signed, Py_ssize_t size) {
  switch (size) {
    case 1:
      return is_signed ? TRITONSERVER_TYPE_INT8 : TRITONSERVER_TYPE_UINT8;
    case 2:
      return is_signed ? TRITONSERVER_TYPE_INT16 : TRITONSERVER_TYPE_UINT16;
    case 4:
      return is_signed ? TRITONSERVER_TYPE_INT32 : TRITONSERVER_TYPE_UINT32;
    case 8:
      return is_signed ? TRITONSERVER_TYPE_INT64 : TRITONSERVER_TYPE_UINT64;
    default:
      return TRITONSERVER_TYPE_INVALID;
  }
}

// Returns the type for a format of the struct module; INVALID for anything except a single number
// in this machine's byte order.
TRITONSERVER_DataType TypeOf(const char* format, Py_ssize_t item_size) {
  if (format == nullptr) return TRITONSERVER_TYPE_UINT8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == '\0' || format[1] != '\0') return TRITONSERVER_TYPE_INVALID;
  switch (*format) {
    case '?':
      return item_size == 1 ? TRITONSERVER_TYPE_BOOL : TRITONSERVER_TYPE_INVALID;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return IntegerType(true, item_size);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return IntegerType(false, item_size);
    case 'e':
      return item_size == 2 ? TRITONSERVER_TYPE_FP16 : TRITONSERVER_TYPE_INVALID;
    case 'f':
      return item_size == 4 ? TRITONSERVER_TYPE_FP32 : TRITONSERVER_TYPE_INVALID;
    case 'd':
      return item_size == 8 ? TRITONSERVER_TYPE_FP64 : TRITONSERVER_TYPE_INVALID;
    default:
      return TRITONSERVER_TYPE_INVALID;
  }
}

// An input in the form of the C API.
struct InputData {
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  const int64_t* shape = nullptr;
  size_t dimensions = 0;
  const void* data = nullptr;
  size_t size = 0;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
};

void Add(TRITONSERVER_InferenceRequest* request, const char* name, const InputData& input) {
  Check(TRITONSERVER_InferenceRequestAddInput(request, name, input.type, input.shape,
                                              input.dimensions));
  Check(TRITONSERVER_InferenceRequestAppendInputData(request, name, input.data, input.size,
                                                     input.memory_type, input.memory_type_id));
}

// Adds `value` as a buffer of numbers. Returns false if that is not possible.
bool AddBuffer(TRITONSERVER_InferenceRequest* request, const char* name, py::handle value,
               Owned& owners) {
  // Only the caller knows whether bytes are numbers or text; Tensor._from_object refuses them.
  if (PyBytes_Check(value.ptr()) || PyByteArray_Check(value.ptr()) ||
      !PyObject_CheckBuffer(value.ptr())) {
    return false;
  }
  auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(value.ptr()));
  if (!view) {
    PyErr_Clear();  // numpy's strings, dates and objects
    return false;
  }
  const Py_buffer* const buffer = PyMemoryView_GET_BUFFER(view.ptr());
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  static constexpr int64_t kScalar = 0;
  InputData input;
  input.type = TypeOf(buffer->format, buffer->itemsize);
  if (input.type == TRITONSERVER_TYPE_INVALID || PyBuffer_IsContiguous(buffer, 'C') == 0)
    return false;
  input.shape = buffer->ndim == 0 ? &kScalar : reinterpret_cast<const int64_t*>(buffer->shape);
  input.dimensions = static_cast<size_t>(buffer->ndim);
  input.data = buffer->buf;
  input.size = static_cast<size_t>(buffer->len);
  // The view prevents its owner from resizing the memory.
  owners.push_back(view.release().ptr());
  Add(request, name, input);
  return true;
}

py::object ToTensor(py::handle value) {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> convert;
  return convert
      .call_once_and_store_result([]() -> py::object {
        return py::module_::import("nereid._api._tensor").attr("Tensor").attr("_from_object");
      })
      .get_stored()(value);
}

void AddTensor(TRITONSERVER_InferenceRequest* request, const char* name, const py::object& tensor,
               Owned& owners) {
  const py::object memory = tensor.attr("memory_buffer");
  std::vector<int64_t> shape;
  shape.reserve(1);  // so that its data is not null
  for (const py::handle dimension : tensor.attr("shape"))
    shape.push_back(py::cast<int64_t>(dimension));
  InputData input;
  input.type = static_cast<TRITONSERVER_DataType>(py::cast<int>(tensor.attr("data_type")));
  input.shape = shape.data();
  input.dimensions = shape.size();
  input.data = reinterpret_cast<const void*>(py::cast<uintptr_t>(memory.attr("data_ptr")));
  input.size = py::cast<size_t>(memory.attr("size"));
  input.memory_type =
      static_cast<TRITONSERVER_MemoryType>(py::cast<int>(memory.attr("memory_type")));
  input.memory_type_id = py::cast<int64_t>(memory.attr("memory_type_id"));
  // The owner rather than the MemoryBuffer, which may be changed to refer to other memory.
  owners.push_back(py::object(memory.attr("owner")).release().ptr());
  Add(request, name, input);
}

}  // namespace

void AddInputs(TRITONSERVER_InferenceRequest* request, const py::dict& inputs, Owned& owners) {
  for (const auto& [key, value] : inputs) {
    const auto name_text = py::cast<std::string>(key);
    const char* const name = AsCText(name_text, "an input's name");
    if (AddBuffer(request, name, value, owners)) continue;
    AddTensor(request, name, ToTensor(value), owners);
  }
}

}  // namespace nereid::python
