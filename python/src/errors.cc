// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

namespace py = pybind11;

namespace nereid::python {

void ThrowInvalidArgument(std::string message) {
  throw ApiError(TRITONSERVER_ERROR_INVALID_ARG, std::move(message));
}

void Check(TRITONSERVER_Error* error) {
  if (error == nullptr) [[likely]]
    return;
  ApiError thrown(TRITONSERVER_ErrorCode(error), TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  throw thrown;
}

void Ignore(TRITONSERVER_Error* error) {
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
}

py::str ToText(const char* text, size_t size) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "replace"));
}

py::str ToText(const std::string& text) { return ToText(text.data(), text.size()); }

const char* AsCText(const std::string& text, const char* what) {
  if (text.find('\0') != std::string::npos) {
    ThrowInvalidArgument(std::string(what) + " must not contain null characters");
  }
  return text.c_str();
}

py::object MakeException(TRITONSERVER_Error_Code code, const std::string& message) {
  const py::object classes = py::module_::import("nereid._api._errors").attr("CLASS_OF_CODE");
  return classes[py::int_(static_cast<int>(code))](ToText(message));
}

void RegisterErrors() {
  // NOLINTNEXTLINE(performance-unnecessary-value-param): pybind11 wants this signature.
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const ApiError& error) {
      const py::object exception = MakeException(error.code(), error.what());
      PyErr_SetObject(py::type::handle_of(exception).ptr(), exception.ptr());
    }
  });
}

}  // namespace nereid::python
