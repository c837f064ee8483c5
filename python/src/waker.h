// SPDX-License-Identifier: Apache-2.0
// How a server thread tells Python that something has arrived, without the GIL: it leaves the
// object that waits in a list and makes a file descriptor readable. An asyncio loop watches the
// descriptor; a thread waits for it.
#pragma once

#include <pybind11/pybind11.h>

#include "backend_kit/mutex.h"
#include "deferred.h"

namespace nereid::python {

// Thread-safe.
class Waker {
 public:
  // Throws std::system_error.
  Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  ~Waker();

  int descriptor() const { return descriptor_; }

  // Takes the reference over. Any thread, without the GIL.
  void Push(PyObject* token);

  // Everything pushed so far, oldest first; makes the descriptor unreadable. Needs the GIL.
  pybind11::list Take();

  // Lets go of the GIL until there is something to take, or a signal came.
  void Wait();

 private:
  int descriptor_;
  backend::Mutex mutex_;
  Owned tokens_ NEREID_KIT_GUARDED_BY(mutex_);
};

void RegisterWaker(pybind11::module_& module);

}  // namespace nereid::python
