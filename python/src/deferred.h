// SPDX-License-Identifier: Apache-2.0
// Python references in the hands of server threads, which never wait for the GIL.
#pragma once

#include <Python.h>

#include <vector>

namespace nereid::python {

using Owned = std::vector<PyObject*>;

// Gives references back at once. Needs the GIL.
void LetGo(Owned& references);

// Gives references back soon: when Python's main thread next takes the GIL, or any thread makes a
// request. Any thread, with or without the GIL.
void LetGoLater(Owned&& references);

// Gives back what LetGoLater has collected. Needs the GIL.
void LetGoOfDeferred();

}  // namespace nereid::python
