// SPDX-License-Identifier: Apache-2.0
// Conversion of a Python program's inputs to a type, a shape and a pointer for the C API.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "deferred.h"
#include "triton/core/tritonserver.h"

namespace nereid::python {

// Adds each value as an input of that name, without copying it. `owners` receives references to
// objects that must live until the server no longer needs the memory. Objects with the buffer
// protocol are used directly; others are converted by Tensor._from_object in Python.
void AddInputs(TRITONSERVER_InferenceRequest* request, const pybind11::dict& inputs, Owned& owners);

}  // namespace nereid::python
