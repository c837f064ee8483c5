// SPDX-License-Identifier: Apache-2.0
// Letting go of the GIL around what may take time.
#pragma once

#include <Python.h>

#include <exception>

namespace nereid::python {

// Runs `work` without the GIL and passes on what it throws. Unlike pybind11's gil_scoped_release
// this does not take the GIL back in a destructor: where the interpreter is ending, that ends the
// thread by unwinding its stack, and a destructor must not be unwound through.
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
