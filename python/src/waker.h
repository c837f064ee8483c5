// SPDX-License-Identifier: Apache-2.0
// Notifies Python of an event from a server thread, without the GIL: the thread adds the waiting
// object to a list and makes a file descriptor readable. An asyncio loop watches the descriptor; a
// thread waits for it.
#pragma once

#include <pybind11/pybind11.h>

#include "backend_kit/mutex.h"
#include "deferred.h"

namespace nereid::python {

// Wakes up Python code. Thread-safe.
class Waker {
 public:
  // Throws std::system_error.
  Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  ~Waker();

  int descriptor() const { return descriptor_; }

  // Takes ownership of the reference. Callable on any thread without the GIL.
  void Push(PyObject* token);

  // Returns everything pushed so far, oldest first, and makes the descriptor unreadable. Needs the
  // GIL.
  pybind11::list Take();

  // Waits without the GIL until there is something to take, or for a signal.
  void Wait();

 private:
  int descriptor_;
  backend::Mutex mutex_;
  Owned tokens_ NEREID_KIT_GUARDED_BY(mutex_);
};

void RegisterWaker(pybind11::module_& module);

}  // namespace nereid::python
