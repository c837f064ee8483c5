// SPDX-License-Identifier: Apache-2.0
#include "waker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "without_gil.h"

namespace py = pybind11;

namespace nereid::python {

Waker::Waker() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Waker::~Waker() {
  LetGoLater(std::move(tokens_));
  close(descriptor_);
}

void Waker::Push(PyObject* token) {
  bool was_empty = false;
  {
    const backend::MutexLock lock(mutex_);
    was_empty = tokens_.empty();
    tokens_.push_back(token);
  }
  // A nonzero counter keeps the descriptor readable; adding one at a time cannot overflow it.
  if (was_empty) static_cast<void>(eventfd_write(descriptor_, 1));
}

py::list Waker::Take() {
  Owned taken;
  eventfd_t count = 0;
  static_cast<void>(eventfd_read(descriptor_, &count));
  {
    const backend::MutexLock lock(mutex_);
    taken.swap(tokens_);
  }
  py::list tokens(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    PyList_SET_ITEM(tokens.ptr(), static_cast<Py_ssize_t>(i), taken[i]);
  }
  return tokens;
}

void Waker::Wait() {
  WithoutGil([this] {
    pollfd readable{.fd = descriptor_, .events = POLLIN, .revents = 0};
    static_cast<void>(poll(&readable, 1, -1));
  });
}

void RegisterWaker(py::module_& module) {
  py::class_<Waker, std::shared_ptr<Waker>>(module, "Waker")
      .def(py::init<>())
      .def("fileno", &Waker::descriptor)
      .def("push", [](Waker& self, const py::object& token) { self.Push(token.inc_ref().ptr()); })
      .def("take", &Waker::Take)
      .def("wait", &Waker::Wait);
}

}  // namespace nereid::python
