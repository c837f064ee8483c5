// SPDX-License-Identifier: Apache-2.0
// From what a Python program passes as an input to what the C API takes: a type, a shape and a
// pointer.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "deferred.h"
#include "triton/core/tritonserver.h"

namespace nereid::python {

// Adds each value as an input of that name, without copying it. `owners` gets references to what
// must stay until the server no longer needs the memory. Anything with the buffer protocol is taken
// as it is; the rest goes through Tensor._from_object of the Python side.
void AddInputs(TRITONSERVER_InferenceRequest* request, const pybind11::dict& inputs, Owned& owners);

}  // namespace nereid::python
