// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <chrono>
#include <utility>

#include <pybind11/stl.h>

#include "errors.h"
#include "inputs.h"
#include "server.h"
#include "without_gil.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

// How often a waiting thread checks for signals, so that Ctrl-C works.
constexpr std::chrono::milliseconds kSignalInterval{100};

void SetCorrelationId(TRITONSERVER_InferenceRequest* request, const py::object& id) {
  if (id.is_none()) return;
  if (PyUnicode_Check(id.ptr())) {
    const auto text = py::cast<std::string>(id);
    Check(TRITONSERVER_InferenceRequestSetCorrelationIdString(request,
                                                              AsCText(text, "a correlation id")));
    return;
  }
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(id.ptr()));
  if (!number) throw py::error_already_set();
  const unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    ThrowInvalidArgument("a correlation id must be from 0 to 2^64-1");
  }
  Check(TRITONSERVER_InferenceRequestSetCorrelationId(request, value));
}

void SetParameter(TRITONSERVER_InferenceRequest* request, py::handle key, py::handle value) {
  constexpr const char* kWhat = "a request parameter";
  const auto key_text = py::cast<std::string>(key);
  const char* const name = AsCText(key_text, kWhat);
  if (PyBool_Check(value.ptr())) {
    Check(TRITONSERVER_InferenceRequestSetBoolParameter(request, name, value.ptr() == Py_True));
  } else if (PyUnicode_Check(value.ptr())) {
    const auto text = py::cast<std::string>(value);
    Check(TRITONSERVER_InferenceRequestSetStringParameter(request, name, AsCText(text, kWhat)));
  } else if (PyFloat_Check(value.ptr())) {
    Check(TRITONSERVER_InferenceRequestSetDoubleParameter(request, name,
                                                          PyFloat_AS_DOUBLE(value.ptr())));
  } else if (PyIndex_Check(value.ptr())) {
    Check(TRITONSERVER_InferenceRequestSetIntParameter(request, name, ToInt64(value, kWhat)));
  } else {
    ThrowInvalidArgument("request parameter '" + key_text +
                         "' must be str, bool, int or float, not " + Py_TYPE(value.ptr())->tp_name);
  }
}

}  // namespace

Call::Call(const py::object& server, const Arguments& arguments)
    : server_object_(server.ptr()),
      server_(py::cast<Server&>(server).handle()),
      classification_(arguments.classification) {
  LetGoOfDeferred();
  const char* const model = AsCText(arguments.model_name, "a model's name");
  // Finds the model without waiting.
  Check(TRITONSERVER_InferenceRequestNew(&request_, server_, model, arguments.model_version));
  try {
    AddArguments(request_, arguments, owners_);
    Check(TRITONSERVER_InferenceRequestSetReleaseCallback(request_, &Call::OnReleased, this));
    Check(TRITONSERVER_InferenceRequestSetResponseCallback(request_, OutputAllocator(), nullptr,
                                                           &Call::OnResponse, this));
  } catch (...) {
    Ignore(TRITONSERVER_InferenceRequestDelete(std::exchange(request_, nullptr)));
    LetGo(owners_);
    throw;
  }
  Py_INCREF(server_object_);
}

void Call::AddArguments(TRITONSERVER_InferenceRequest* request, const Arguments& arguments,
                        Owned& owners) {
  if (arguments.request_id) {
    Check(TRITONSERVER_InferenceRequestSetId(request,
                                             AsCText(*arguments.request_id, "a request id")));
  }
  if (arguments.flags != 0) Check(TRITONSERVER_InferenceRequestSetFlags(request, arguments.flags));
  SetCorrelationId(request, arguments.correlation_id);
  if (arguments.priority != 0) {
    Check(TRITONSERVER_InferenceRequestSetPriorityUInt64(request, arguments.priority));
  }
  if (arguments.timeout_us != 0) {
    Check(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, arguments.timeout_us));
  }
  AddInputs(request, arguments.inputs, owners);
  for (const auto& [key, value] : arguments.parameters) SetParameter(request, key, value);
  for (const std::string& name : arguments.requested_outputs) {
    Check(TRITONSERVER_InferenceRequestAddRequestedOutput(request,
                                                          AsCText(name, "an output's name")));
  }
}

// May run on any thread and without the GIL: Python objects were released before or are released
// later.
Call::~Call() {
  if (request_ != nullptr) Ignore(TRITONSERVER_InferenceRequestDelete(request_));
  Owned rest = std::move(owners_);
  if (token_ != nullptr) rest.push_back(token_);
  if (server_object_ != nullptr) rest.push_back(server_object_);
  LetGoLater(std::move(rest));
}

void Call::Start() {
  TRITONSERVER_InferenceRequest* request = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    if (self_ || is_complete_ || request_ == nullptr)
      ThrowInvalidArgument("the request was sent before");
    is_released_ = false;
    self_ = shared_from_this();
    // The server owns the request from now on; callbacks may run before the function returns.
    request = request_;
  }
  TRITONSERVER_Error* error = nullptr;
  WithoutGil([&] { error = TRITONSERVER_ServerInferAsync(server_, request, nullptr); });
  if (error == nullptr) [[likely]]
    return;
  // The server refused the request, so no callback runs.
  std::shared_ptr<Call> self;
  {
    const backend::MutexLock lock(mutex_);
    self = std::move(self_);
    is_released_ = true;
    request_ = nullptr;
  }
  Ignore(TRITONSERVER_InferenceRequestDelete(request));
  LetGoOfOwners();
  Check(error);
}

void Call::OnReleased(TRITONSERVER_InferenceRequest* /*request*/, uint32_t flags, void* userp) {
  if ((flags & TRITONSERVER_REQUEST_RELEASE_ALL) == 0)
    return;  // rescheduled: the server still has the request
  auto* const call = static_cast<Call*>(userp);
  bool is_over = false;
  Owned owners;
  {
    const backend::MutexLock lock(call->mutex_);
    call->is_released_ = true;
    is_over = call->is_complete_;
    // Otherwise Python releases them when it takes the next response, which needs no separate
    // wake-up.
    if (call->is_abandoned_) owners.swap(call->owners_);
  }
  LetGoLater(std::move(owners));
  if (is_over) call->End();
}

void Call::OnResponse(TRITONSERVER_InferenceResponse* handle, uint32_t flags, void* userp) {
  auto* const call = static_cast<Call*>(userp);
  const bool is_final = (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
  Response response(handle, is_final, call->classification_ ? &*call->classification_ : nullptr);
  bool is_over = false;
  {
    const backend::MutexLock lock(call->mutex_);
    if (!call->is_abandoned_) call->responses_.push_back(std::move(response));
    if (call->token_ != nullptr) {
      call->waker_->Push(std::exchange(call->token_, nullptr));
      call->waker_.reset();
    }
    call->arrived_.NotifyOne();
    if (is_final) {
      call->is_complete_ = true;
      is_over = call->is_released_;
    }
  }
  if (is_over) call->End();
}

void Call::End() {
  TRITONSERVER_InferenceRequest* request = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    is_over_ = true;
    if (cancellers_ == 0) request = std::exchange(request_, nullptr);
  }
  if (request != nullptr) Ignore(TRITONSERVER_InferenceRequestDelete(request));
  std::shared_ptr<Call> self;
  {
    // The server may be destroyed only from now on.
    const backend::MutexLock lock(mutex_);
    self = std::move(self_);
  }
  // The call may be destroyed here.
}

void Call::LetGoOfOwners() {
  Owned owners;
  {
    const backend::MutexLock lock(mutex_);
    if (is_released_) owners.swap(owners_);
  }
  LetGo(owners);
}

std::optional<Response> Call::Pop() {
  if (responses_.empty()) return std::nullopt;
  Response response = std::move(responses_.front());
  responses_.pop_front();
  return response;
}

py::object Call::ToPython(Response response) {
  LetGoOfOwners();
  return response.ToPython();
}

py::object Call::TryNext() {
  std::optional<Response> response;
  {
    const backend::MutexLock lock(mutex_);
    response = Pop();
  }
  if (!response) return py::none();
  return ToPython(*std::move(response));
}

py::object Call::Next() {
  while (true) {
    std::optional<Response> response;
    bool is_complete = false;
    {
      const backend::MutexLock lock(mutex_);
      response = Pop();
      is_complete = is_complete_;
    }
    if (response) return ToPython(*std::move(response));
    if (is_complete) ThrowInvalidArgument("there are no more responses");
    WithoutGil([this] {
      const auto end = backend::CondVar::Clock::now() + kSignalInterval;
      const backend::MutexLock lock(mutex_);
      while (responses_.empty() && arrived_.WaitUntil(mutex_, end)) {
      }
    });
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

bool Call::Arm(const std::shared_ptr<Waker>& waker, const py::object& token) {
  PyObject* replaced = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    if (!responses_.empty()) return false;
    if (is_complete_) ThrowInvalidArgument("there are no more responses");
    waker_ = waker;
    replaced = std::exchange(token_, py::object(token).release().ptr());
  }
  Py_XDECREF(replaced);
  return true;
}

void Call::Cancel() {
  TRITONSERVER_InferenceRequest* request = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    if (request_ == nullptr || !self_ || is_over_) return;
    ++cancellers_;
    request = request_;
  }
  // The server may complete the request on this very thread.
  TRITONSERVER_Error* error = nullptr;
  WithoutGil([&] { error = TRITONSERVER_InferenceRequestCancel(request); });
  {
    const backend::MutexLock lock(mutex_);
    --cancellers_;
    request = is_over_ && cancellers_ == 0 ? std::exchange(request_, nullptr) : nullptr;
  }
  if (request != nullptr) Ignore(TRITONSERVER_InferenceRequestDelete(request));
  Check(error);
}

void Call::Abandon() {
  std::deque<Response> responses;
  PyObject* token = nullptr;
  PyObject* server = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    is_abandoned_ = true;
    responses.swap(responses_);
    token = std::exchange(token_, nullptr);
    if (!self_) server = std::exchange(server_object_, nullptr);
  }
  Py_XDECREF(token);
  LetGoOfOwners();
  Py_XDECREF(server);
}

namespace {

// Python's reference to a call: abandons the call when it is dropped.
class CallHolder {
 public:
  explicit CallHolder(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  CallHolder(const CallHolder&) = delete;
  CallHolder& operator=(const CallHolder&) = delete;
  ~CallHolder() { call_->Abandon(); }
  Call& call() { return *call_; }

 private:
  std::shared_ptr<Call> call_;
};

std::unique_ptr<CallHolder> StartCall(const py::object& server, std::string model_name,
                                      int64_t model_version, std::optional<std::string> request_id,
                                      uint32_t flags, py::object correlation_id, uint64_t priority,
                                      uint64_t timeout_us, py::dict inputs, py::dict parameters,
                                      std::vector<std::string> requested_outputs,
                                      const std::optional<std::map<std::string, uint32_t>>& classes,
                                      bool has_batches) {
  Call::Arguments arguments;
  arguments.model_name = std::move(model_name);
  arguments.model_version = model_version;
  arguments.request_id = std::move(request_id);
  arguments.flags = flags;
  arguments.correlation_id = std::move(correlation_id);
  arguments.priority = priority;
  arguments.timeout_us = timeout_us;
  arguments.inputs = std::move(inputs);
  arguments.parameters = std::move(parameters);
  arguments.requested_outputs = std::move(requested_outputs);
  if (classes) arguments.classification = Classification{*classes, has_batches};
  auto call = std::make_shared<Call>(server, arguments);
  call->Start();
  return std::make_unique<CallHolder>(std::move(call));
}

}  // namespace

void RegisterCall(py::module_& module) {
  py::class_<CallHolder>(module, "Call", "A request that was sent, and its responses.")
      .def("next", [](CallHolder& self) { return self.call().Next(); })
      .def("try_next", [](CallHolder& self) { return self.call().TryNext(); })
      .def("arm", [](CallHolder& self, const std::shared_ptr<Waker>& waker,
                     const py::object& token) { return self.call().Arm(waker, token); })
      .def("cancel", [](CallHolder& self) { self.call().Cancel(); });
  module.def("start_call", &StartCall);
}

}  // namespace nereid::python
