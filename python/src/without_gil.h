// SPDX-License-Identifier: Apache-2.0
// Releases the GIL around slow operations.
#pragma once

#include <Python.h>

#include <exception>

namespace nereid::python {

// Runs `work` without the GIL and rethrows its exceptions. Unlike pybind11's gil_scoped_release
// this does not take the GIL in a destructor: if the interpreter is ending, taking it ends the
// thread by unwinding its stack, which a destructor must not do.
template <typename Work>
void WithoutGil(Work work) {
  std::exception_ptr thrown;
  PyThreadState* const thread = PyEval_SaveThread();
  try {
    work();
  } catch (const std::exception&) {
    thrown = std::current_exception();
  }
  PyEval_RestoreThread(thread);
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace nereid::python
