// SPDX-License-Identifier: Apache-2.0
// Releases Python references that server threads hold, which never wait for the GIL.
#pragma once

#include <Python.h>

#include <vector>

namespace nereid::python {

using Owned = std::vector<PyObject*>;

// Releases references at once. Needs the GIL.
void LetGo(Owned& references);

// Releases references soon: when Python's main thread next takes the GIL, or any thread makes a
// request. Callable on any thread, with or without the GIL.
void LetGoLater(Owned&& references);

// Releases the references given to LetGoLater. Needs the GIL.
void LetGoOfDeferred();

}  // namespace nereid::python
