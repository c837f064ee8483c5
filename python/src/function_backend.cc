// SPDX-License-Identifier: Apache-2.0
// The backend "function", whose models are functions of this program. The extension module is its
// library: the folder of such a model has a link to it (nereid/_functions/_repository.py), so the
// server opens what Python has already loaded. What runs is made by nereid._functions._run; this
// file gives it the requests on the threads of the instances.
#include <memory>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

#include "backend_kit/entry_points.h"
#include "deferred.h"
#include "errors.h"
#include "job.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;

// Python's state of a thread of the server, which is kept until the thread ends: making one anew
// for each execution would cost more, and lose what the function keeps for its thread. If the
// interpreter is gone by then, so is the state.
class PythonThread {
 public:
  PythonThread() : state_(PyGILState_Ensure()), saved_(PyEval_SaveThread()) {}
  PythonThread(const PythonThread&) = delete;
  PythonThread& operator=(const PythonThread&) = delete;
  ~PythonThread() {
    if (Py_IsInitialized() == 0) return;
    PyEval_RestoreThread(saved_);
    PyGILState_Release(state_);
  }
  // Makes the state of the calling thread, unless it has one.
  static void Keep() { thread_local const PythonThread kept; }

 private:
  const PyGILState_STATE state_;
  PyThreadState* const saved_;
};

// A model. Immutable.
class Model {
 public:
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                               backend::NoBackendState&) {
    TRITONSERVER_Message* message = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelConfig(handle, 1, &message));
    const char* text = nullptr;
    size_t size = 0;
    Error error(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
    auto model = std::make_unique<Model>();
    if (error.ok()) model->config_json.assign(text, size);
    Error(TRITONSERVER_MessageDelete(message)).Ignore();
    if (!error.ok()) return error;
    return model;
  }

  std::string config_json;
};

// An instance, with the runner that Python makes for it.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                  Model& model) {
    PythonThread::Keep();
    const py::gil_scoped_acquire gil;
    try {
      py::object runner =
          py::module_::import("nereid._functions._run").attr("make_runner")(model.config_json);
      const Job::Kind kind{.is_batching = py::cast<bool>(runner.attr("is_batching")),
                           .is_decoupled = py::cast<bool>(runner.attr("is_decoupled"))};
      return std::make_unique<Instance>(handle, kind, std::move(runner));
    } catch (py::error_already_set& error) {
      return Error::Internal(error.what());
    }
  }
  // Needs the GIL.
  Instance(TRITONBACKEND_ModelInstance* handle, Job::Kind kind, py::object runner)
      : handle_(handle), kind_(kind), runner_(runner.release().ptr()) {}
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire gil;
    Py_DECREF(runner_);
  }

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    PythonThread::Keep();
    auto job = std::make_unique<Job>(handle_, kind_, requests, count);
    try {
      if (const Error error = job->Gather(); !error.ok()) {
        return job->FailAll(error.code(), error.message());
      }
    } catch (const std::exception& exception) {
      return job->FailAll(TRITONSERVER_ERROR_UNAVAILABLE, exception.what());
    }
    const py::gil_scoped_acquire gil;
    LetGoOfDeferred();
    const py::handle runner(runner_);
    try {
      // The job completes its requests also if this fails.
      runner(py::cast(std::move(job)));
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a function served by nereid");
    } catch (const std::exception& exception) {
      PySys_WriteStderr("nereid: a function could not be called: %.500s\n", exception.what());
    }
  }

 private:
  TRITONBACKEND_ModelInstance* const handle_;
  const Job::Kind kind_;
  PyObject* const runner_;  // owned
};

}  // namespace
}  // namespace nereid::python

// Inputs are copied once, before anything looks at them, and outputs are written or lent whole.
NEREID_KIT_ENTRY_POINTS(nereid::backend::NoBackendState, nereid::python::Model,
                        nereid::python::Instance,
                        NEREIDBACKEND_TRAIT_WRITES_OUTPUTS | NEREIDBACKEND_TRAIT_STANDS_CHANGES)
