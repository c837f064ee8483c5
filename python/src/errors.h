// SPDX-License-Identifier: Apache-2.0
// Errors of the C API as Python exceptions, one class per code (nereid._api._errors).
#pragma once

#include <exception>
#include <string>

#include <pybind11/pybind11.h>

#include "triton/core/tritonserver.h"

namespace nereid::python {

// Becomes the exception of its code when C++ returns to Python. Immutable.
class ApiError final : public std::exception {
 public:
  ApiError(TRITONSERVER_Error_Code code, std::string message)
      : code_(code), message_(std::move(message)) {}
  TRITONSERVER_Error_Code code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  TRITONSERVER_Error_Code code_;
  std::string message_;
};

[[noreturn]] void ThrowInvalidArgument(std::string message);

// Throws the content of `error` and deletes it; does nothing for null.
void Check(TRITONSERVER_Error* error);

// Deletes an error that cannot be reported.
void Ignore(TRITONSERVER_Error* error);

// Converts a text of the server, whatever bytes it consists of.
pybind11::str ToText(const char* text, size_t size);
pybind11::str ToText(const std::string& text);

// Returns a zero-terminated text for the C API. Throws InvalidArgumentError, which names `what`, if
// it contains a null character.
const char* AsCText(const std::string& text, const char* what);

// Makes an exception object of the class for `code`. Needs the GIL.
pybind11::object MakeException(TRITONSERVER_Error_Code code, const std::string& message);

void RegisterErrors();

}  // namespace nereid::python
