// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "backend_kit/shape.h"
#include "backend_kit/tensors.h"
#include "deferred.h"
#include "errors.h"
#include "nereid/backend_outputs.h"
#include "nereid/backend_responses.h"
#include "without_gil.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

using backend::Error;
using backend::InputView;
using backend::StrCat;

// Smaller outputs are copied: keeping a Python object costs more.
constexpr size_t kMinLentBytes = size_t{16} << 10;

// Whether the calling thread has the GIL.
bool HasGil() { return Py_IsInitialized() != 0 && PyGILState_Check() != 0; }

// A Python object that memory belongs to. Its last owner may be any thread, with or without the
// GIL.
class Keeper {
 public:
  explicit Keeper(py::object object) : object_(object.release().ptr()) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    if (HasGil()) {
      Py_DECREF(object_);
    } else {
      LetGoLater({object_});
    }
  }

 private:
  PyObject* const object_;
};

py::object ParameterValue(TRITONSERVER_ParameterType type, const void* value) {
  switch (type) {
    case TRITONSERVER_PARAMETER_INT:
      return py::int_(*static_cast<const int64_t*>(value));
    case TRITONSERVER_PARAMETER_BOOL:
      return py::bool_(*static_cast<const bool*>(value));
    case TRITONSERVER_PARAMETER_DOUBLE:
      return py::float_(*static_cast<const double*>(value));
    default: {
      const auto* const text = static_cast<const char*>(value);
      return ToText(text, std::strlen(text));
    }
  }
}

py::dict ParametersOf(TRITONBACKEND_Request* request) {
  py::dict parameters;
  uint32_t count = 0;
  Check(TRITONBACKEND_RequestParameterCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* key = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    Check(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
    parameters[ToText(key, std::strlen(key))] = ParameterValue(type, value);
  }
  return parameters;
}

// The client's id of the sequence: a number or, if that is 0, a text; 0 without one.
py::object CorrelationIdOf(TRITONBACKEND_Request* request) {
  uint64_t number = 0;
  if (Error error(TRITONBACKEND_RequestCorrelationId(request, &number)); error.ok()) {
    return py::int_(number);
  }
  const char* text = nullptr;
  Check(TRITONBACKEND_RequestCorrelationIdString(request, &text));
  return ToText(text, std::strlen(text));
}

}  // namespace

// An output of the whole batch.
struct Job::Output {
  std::string name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::vector<std::span<const char>> pieces;  // one for each request
  std::shared_ptr<const Keeper> keeper;
  bool is_lent = false;
};

Job::Job(TRITONBACKEND_ModelInstance* instance, Kind kind, TRITONBACKEND_Request** requests,
         uint32_t count)
    : instance_(instance), kind_(kind), requests_(requests, requests + count) {}

Job::~Job() {
  if (requests_.empty()) return;
  const auto fail = [this] {
    FailAll(TRITONSERVER_ERROR_INTERNAL, "the function ended without a response");
  };
  if (HasGil()) {
    PyThreadState* const thread = PyEval_SaveThread();
    fail();
    PyEval_RestoreThread(thread);
  } else {
    fail();
  }
}

std::span<const int64_t> Job::RowOf(std::span<const int64_t> shape) const {
  return shape.subspan(kind_.is_batching && !shape.empty() ? 1 : 0);
}

Error Job::GatherInput(uint32_t index) {
  Input& input = inputs_[index];
  std::vector<InputView> views;
  uint64_t size = 0;
  for (size_t r = 0; r < requests_.size(); ++r) {
    auto read = r == 0 ? backend::ReadInput(requests_[r], index)
                       : backend::ReadInput(requests_[r], index, input.name.c_str());
    if (!read.ok()) return read.TakeError();
    const InputView& view = views.emplace_back(read.value());
    size += view.byte_size;
    const auto row = RowOf(view.shape);
    if (r == 0) {
      input.name = view.name;
      input.type = view.datatype;
      input.shape.assign(view.shape.begin(), view.shape.end());
    } else if (const auto first = RowOf(input.shape);
               !std::equal(row.begin(), row.end(), first.begin(), first.end())) {
      return Error::Internal(StrCat("input '", input.name, "' differs in shape within a batch"));
    }
    if (kind_.is_batching && index == 0) rows_[r] = view.shape.empty() ? 1 : view.shape[0];
  }
  if (kind_.is_batching && !input.shape.empty()) {
    input.shape[0] = std::accumulate(rows_.begin(), rows_.end(), int64_t{0});
  }
  if (input.type != TRITONSERVER_TYPE_BYTES) {
    NEREID_KIT_ASSIGN(const uint64_t wanted, backend::TensorByteSize(input.type, input.shape));
    if (wanted != size) {
      return Error::InvalidArgument(
          StrCat("input '", input.name, "' has ", size, " bytes, and its shape needs ", wanted));
    }
  }
  input.data = Buffer::OfSize(size);
  char* to = input.data.data();
  for (const InputView& view : views) {
    NEREID_KIT_TRY(backend::CopyInput(view, {to, view.byte_size}));
    to += view.byte_size;
  }
  return {};
}

Error Job::Gather() {
  rows_.assign(requests_.size(), 1);
  for (TRITONBACKEND_Request* const request : requests_) {
    NEREID_KIT_ASSIGN(backend::ResponseSender sender, backend::ResponseSender::Create(request));
    senders_.push_back(std::move(sender));
  }
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(requests_[0], &count));
  for (TRITONBACKEND_Request* const request : requests_) {
    uint32_t others = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(request, &others));
    if (others != count) return Error::Internal("the requests of a batch differ in their inputs");
  }
  inputs_.resize(count);
  for (uint32_t i = 0; i < count; ++i) NEREID_KIT_TRY(GatherInput(i));
  compute_start_ns_ = backend::NowNs();
  return {};
}

py::list Job::TakeInputs() {
  py::list list;
  for (Input& input : inputs_) {
    py::tuple shape(input.shape.size());
    for (size_t d = 0; d < input.shape.size(); ++d) shape[d] = input.shape[d];
    list.append(py::make_tuple(ToText(input.name), static_cast<int>(input.type), std::move(shape),
                               std::move(input.data)));
  }
  inputs_.clear();
  return list;
}

py::list Job::Rows() const {
  py::list rows;
  for (const int64_t count : rows_) rows.append(count);
  return rows;
}

py::list Job::Requests() const {
  py::list list;
  for (TRITONBACKEND_Request* const request : requests_) {
    const char* id = nullptr;
    uint32_t flags = 0;
    Check(TRITONBACKEND_RequestId(request, &id));
    Check(TRITONBACKEND_RequestFlags(request, &flags));
    list.append(py::make_tuple(ToText(id, std::strlen(id)), CorrelationIdOf(request), flags,
                               ParametersOf(request)));
  }
  return list;
}

Job::Output Job::ReadOutput(const py::tuple& output) const {
  Output read;
  read.name = py::cast<std::string>(output[0]);
  read.type = static_cast<TRITONSERVER_DataType>(py::cast<int>(output[1]));
  for (const py::handle dimension : py::cast<py::tuple>(output[2])) {
    read.shape.push_back(py::cast<int64_t>(dimension));
  }
  const py::object data = output[3];
  if (PyList_Check(data.ptr())) {
    for (const py::handle piece : data) {
      const auto& buffer = py::cast<const Buffer&>(piece);
      read.pieces.emplace_back(buffer.data(), buffer.size());
    }
    read.keeper = std::make_shared<Keeper>(data);
  } else {
    auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(data.ptr()));
    if (!view) throw py::error_already_set();
    const Py_buffer* const buffer = PyMemoryView_GET_BUFFER(view.ptr());
    if (PyBuffer_IsContiguous(buffer, 'C') == 0) ThrowInvalidArgument("an output has gaps");
    const auto* next = static_cast<const char*>(buffer->buf);
    const auto total = std::accumulate(rows_.begin(), rows_.end(), int64_t{0});
    const auto size = static_cast<size_t>(buffer->len);
    for (const int64_t rows : rows_) {
      const size_t piece = !kind_.is_batching ? size
                           : total == 0
                               ? 0
                               : size / static_cast<size_t>(total) * static_cast<size_t>(rows);
      read.pieces.emplace_back(next, piece);
      next += piece;
    }
    read.is_lent = py::cast<bool>(output[4]) && size >= kMinLentBytes;
    read.keeper = std::make_shared<Keeper>(std::move(view));
  }
  if (read.pieces.size() != rows_.size()) ThrowInvalidArgument("an output lacks a request");
  return read;
}

bool Job::Wants(size_t request, const std::string& output) const {
  uint32_t count = 0;
  Error(TRITONBACKEND_RequestOutputCount(requests_[request], &count)).Ignore();
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    Error error(TRITONBACKEND_RequestOutputName(requests_[request], i, &name));
    if (error.ok() && output == name) return true;
  }
  return false;
}

Error Job::Fill(TRITONBACKEND_Response* response, size_t request,
                const std::vector<Output>& outputs) const {
  for (const Output& output : outputs) {
    if (!Wants(request, output.name)) continue;
    std::vector<int64_t> shape = output.shape;
    if (kind_.is_batching && !shape.empty()) shape[0] = rows_[request];
    const std::span<const char> piece = output.pieces[request];
    if (output.is_lent && NEREIDBACKEND_OutputLend != nullptr) {
      TRITONBACKEND_Output* made = nullptr;
      NEREID_KIT_TRY(TRITONBACKEND_ResponseOutput(response, &made, output.name.c_str(), output.type,
                                                  shape.data(),
                                                  static_cast<uint32_t>(shape.size())));
      using Held = std::shared_ptr<const Keeper>;
      NEREID_KIT_TRY(NEREIDBACKEND_OutputLend(
          made, piece.data(), piece.size(), [](void* user) { delete static_cast<Held*>(user); },
          new Held(output.keeper)));
      continue;
    }
    NEREID_KIT_ASSIGN(char* const to, backend::AddOutput(response, output.name.c_str(), output.type,
                                                         shape, piece.size()));
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
  }
  return {};
}

void Job::SendAll(const std::vector<Output>& outputs, bool may_wait) {
  const uint64_t output_start_ns = backend::NowNs();
  compute_end_ns_ = output_start_ns;
  std::vector<TRITONBACKEND_Response*> responses(senders_.size(), nullptr);
  std::vector<Error> errors(senders_.size());
  for (size_t r = 0; r < senders_.size(); ++r) {
    auto made = senders_[r].New();
    if (made.ok()) {
      responses[r] = made.value();
      errors[r] = Fill(responses[r], r, outputs);
    } else {
      backend::LogIfError(made.TakeError(), "failed to create response");
    }
  }
  if (!kind_.is_decoupled) Report(true);
  for (size_t r = 0; r < senders_.size(); ++r) {
    if (kind_.is_decoupled) {
      senders_[r].Report(instance_, start_ns_, output_start_ns, backend::NowNs(), errors[r].get());
    }
    if (responses[r] == nullptr) continue;
    if (may_wait || NEREIDBACKEND_ResponseTrySend == nullptr) {
      backend::ResponseSender::Send(responses[r], errors[r].get(), !kind_.is_decoupled);
      continue;
    }
    bool sent = true;
    backend::LogIfError(
        Error(NEREIDBACKEND_ResponseTrySend(
            responses[r], kind_.is_decoupled ? 0 : TRITONSERVER_RESPONSE_COMPLETE_FINAL,
            errors[r].get(), &sent)),
        "failed to send response");
    if (!sent) left_.emplace_back(responses[r], std::move(errors[r]));
  }
  if (!kind_.is_decoupled && left_.empty()) Release();
}

std::vector<Job::Output> Job::ReadOutputs(const py::list& outputs) const {
  if (requests_.empty()) ThrowInvalidArgument("the requests have had their last response");
  std::vector<Output> read;
  for (const py::handle output : outputs) read.push_back(ReadOutput(py::cast<py::tuple>(output)));
  return read;
}

void Job::Send(const py::list& outputs) {
  const std::vector<Output> read = ReadOutputs(outputs);
  WithoutGil([&] { SendAll(read, true); });
}

bool Job::TrySend(const py::list& outputs) {
  const std::vector<Output> read = ReadOutputs(outputs);
  WithoutGil([&] { SendAll(read, false); });
  return left_.empty();
}

void Job::SendRest() {
  WithoutGil([this] {
    SendLeft();
    if (!kind_.is_decoupled) Release();
  });
}

void Job::SendLeft() {
  for (const auto& [response, error] : std::exchange(left_, {})) {
    backend::ResponseSender::Send(response, error.get(), !kind_.is_decoupled);
  }
}

void Job::Finish() {
  if (requests_.empty()) return;
  WithoutGil([this] {
    if (compute_end_ns_ == 0) compute_end_ns_ = backend::NowNs();
    Report(true);
    for (const backend::ResponseSender& sender : senders_) sender.End();
    Release();
  });
}

void Job::Fail(int code, const std::string& message) {
  WithoutGil([&] { FailAll(static_cast<TRITONSERVER_Error_Code>(code), message); });
}

void Job::FailAll(TRITONSERVER_Error_Code code, const std::string& message) {
  if (requests_.empty()) return;
  if (!left_.empty()) {
    SendLeft();
    if (!kind_.is_decoupled) return Release();
  }
  compute_end_ns_ = backend::NowNs();
  Report(false);
  for (const backend::ResponseSender& sender : senders_) sender.Fail(Error(code, message));
  Release();
}

bool Job::IsCancelled() const {
  return std::all_of(senders_.begin(), senders_.end(),
                     [](const backend::ResponseSender& sender) { return sender.IsCancelled(); });
}

void Job::Report(bool is_success) {
  const uint64_t end_ns = backend::NowNs();
  if (compute_start_ns_ == 0) compute_start_ns_ = end_ns;
  for (TRITONBACKEND_Request* const request : requests_) {
    backend::LogIfError(
        Error(TRITONBACKEND_ModelInstanceReportStatistics(
            instance_, request, is_success, start_ns_, compute_start_ns_, compute_end_ns_, end_ns)),
        "failed reporting request statistics");
  }
  if (!is_success) return;
  const auto rows = std::accumulate(rows_.begin(), rows_.end(), int64_t{0});
  backend::LogIfError(Error(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                          instance_, static_cast<uint64_t>(rows), start_ns_, compute_start_ns_,
                          compute_end_ns_, end_ns)),
                      "failed reporting batch request statistics");
}

void Job::Release() {
  senders_.clear();
  for (TRITONBACKEND_Request* const request : std::exchange(requests_, {})) {
    backend::LogIfError(
        Error(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL)),
        "failed releasing request");
  }
}

void RegisterJob(py::module_& module) {
  py::class_<Job>(module, "Job")
      .def("take_inputs", &Job::TakeInputs)
      .def("rows", &Job::Rows)
      .def("requests", &Job::Requests)
      .def("send", &Job::Send)
      .def("try_send", &Job::TrySend)
      .def("send_rest", &Job::SendRest)
      .def("finish", &Job::Finish)
      .def("fail", &Job::Fail)
      .def("is_cancelled", &Job::IsCancelled);
}

}  // namespace nereid::python
