// SPDX-License-Identifier: Apache-2.0
// The repeat backend, for trying out decoupled models: a request with n elements in IN gets n
// responses. The i-th waits DELAY[i] milliseconds and then contains OUT = IN[i] and IDX = i. After
// WAIT milliseconds the request is released and the instance is free for the next one, whether or
// not all responses were sent. Models and clients are those of Triton's backend of the same name.
#include "backend_kit/controls.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"
#include "backend_kit/responses.h"

namespace nereid::repeat {
namespace {

using backend::Error;
using backend::InputView;
using backend::NowNs;
using backend::ResponseSender;
using backend::Result;
using backend::StrCat;

// A model. Immutable.
class Model {
 public:
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                               backend::NoBackendState&) {
    NEREID_KIT_ASSIGN(const backend::ModelConfig config, backend::ModelConfig::Load(handle));
    if (config.max_batch_size() != 0) {
      return Error::InvalidArgument("repeat backend only supports models with max_batch_size == 0");
    }
    NEREID_KIT_TRY(backend::ExpectTensors(
        config, "input",
        {{"IN", "TYPE_INT32", {}}, {"DELAY", "TYPE_UINT32", {}}, {"WAIT", "TYPE_UINT32", {1}}}));
    NEREID_KIT_TRY(backend::ExpectTensors(
        config, "output", {{"OUT", "TYPE_INT32", {1}}, {"IDX", "TYPE_UINT32", {1}}}));
    return std::make_unique<Model>();
  }
};

// Copies the elements of an input, which is freed when the request is released.
template <typename Element>
Result<std::vector<Element>> ReadVector(TRITONBACKEND_Request* request, const char* name) {
  TRITONBACKEND_Input* input = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, name, &input));
  NEREID_KIT_ASSIGN(const InputView view, backend::ReadInput(input));
  std::vector<Element> elements(view.byte_size / sizeof(Element));
  NEREID_KIT_TRY(backend::CopyInput(
      view, {reinterpret_cast<char*>(elements.data()), elements.size() * sizeof(Element)}));
  return elements;
}

// The responses to one request and their delays. Immutable.
struct Task {
  std::vector<int32_t> in;
  std::vector<uint32_t> delay_ms;

  static Result<Task> Read(TRITONBACKEND_Request* request) {
    Task task;
    NEREID_KIT_ASSIGN(task.in, ReadVector<int32_t>(request, "IN"));
    NEREID_KIT_ASSIGN(task.delay_ms, ReadVector<uint32_t>(request, "DELAY"));
    if (task.in.size() != task.delay_ms.size()) {
      return Error::InvalidArgument(StrCat("expected IN and DELAY shape to match, got [",
                                           task.in.size(), "] and [", task.delay_ms.size(), "]"));
    }
    return task;
  }
};

Error SendOne(const ResponseSender& sender, int32_t value, uint32_t index) {
  NEREID_KIT_ASSIGN(TRITONBACKEND_Response* const response, sender.New());
  const auto fill = [&]() -> Error {
    const int64_t shape[] = {1};
    NEREID_KIT_ASSIGN(char* const out, backend::AddOutput(response, "OUT", TRITONSERVER_TYPE_INT32,
                                                          shape, sizeof(value)));
    std::memcpy(out, &value, sizeof(value));
    NEREID_KIT_ASSIGN(char* const idx, backend::AddOutput(response, "IDX", TRITONSERVER_TYPE_UINT32,
                                                          shape, sizeof(index)));
    std::memcpy(idx, &index, sizeof(index));
    return {};
  };
  if (Error error = fill(); !error.ok()) {
    Error(TRITONBACKEND_ResponseDelete(response)).Ignore();
    return error;
  }
  ResponseSender::Send(response);
  return {};
}

// Stops early if the client has disconnected.
void SendAll(const ResponseSender& sender, const Task& task) {
  for (size_t i = 0; i < task.in.size(); ++i) {
    if (backend::WaitUnlessCancelled(sender, std::chrono::milliseconds(task.delay_ms[i]))) {
      return sender.Fail(Error(TRITONSERVER_ERROR_CANCELLED, "request was cancelled"));
    }
    if (Error error = SendOne(sender, task.in[i], static_cast<uint32_t>(i)); !error.ok()) {
      return sender.Fail(std::move(error));
    }
  }
  sender.End();
}

// An instance. Confined to the thread that executes, except for the responses.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle, Model&) {
    return std::make_unique<Instance>(handle);
  }
  explicit Instance(TRITONBACKEND_ModelInstance* handle) : handle_(handle) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    for (uint32_t r = 0; r < count; ++r) {
      ExecuteOne(requests[r]);
    }
  }

 private:
  void ExecuteOne(TRITONBACKEND_Request* request) {
    const uint64_t start_ns = NowNs();
    uint32_t wait_ms = 0;
    const Error error = Begin(request, &wait_ms);
    if (error.ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    }
    const uint64_t end_ns = NowNs();
    backend::LogIfError(Error(TRITONBACKEND_ModelInstanceReportStatistics(
                            handle_, request, error.ok(), start_ns, start_ns, end_ns, end_ns)),
                        "failed reporting request statistics");
    if (error.ok()) {
      backend::LogIfError(Error(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                              handle_, 1, start_ns, start_ns, end_ns, end_ns)),
                          "failed reporting batch request statistics");
    }
    backend::LogIfError(
        Error(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL)),
        "failed releasing request");
  }

  // Starts the responses; on failure the error was sent as the only response.
  Error Begin(TRITONBACKEND_Request* request, uint32_t* wait_ms) {
    NEREID_KIT_ASSIGN(ResponseSender made, ResponseSender::Create(request));
    // Shared with the sending thread, because std::function requires copyable captures.
    const auto sender = std::make_shared<const ResponseSender>(std::move(made));
    const auto start = [&]() -> Error {
      NEREID_KIT_ASSIGN(const std::vector<uint32_t> wait, ReadVector<uint32_t>(request, "WAIT"));
      if (wait.size() != 1) {
        return Error::InvalidArgument("unexpected size for WAIT input");
      }
      *wait_ms = wait[0];
      NEREID_KIT_ASSIGN(Task task, Task::Read(request));
      if (task.in.empty() || (task.in.size() == 1 && task.delay_ms[0] == 0)) {
        // Without delays no thread is needed.
        SendAll(*sender, task);
        return {};
      }
      responses_.Start([sender, task = std::move(task)] { SendAll(*sender, task); });
      return {};
    };
    Error error = start();
    if (!error.ok()) {
      sender->Fail(Error(error.code(), error.message()));
    }
    return error;
  }

  TRITONBACKEND_ModelInstance* const handle_;
  backend::BackgroundWork responses_;
};

}  // namespace
}  // namespace nereid::repeat

NEREID_KIT_ENTRY_POINTS(nereid::backend::NoBackendState, nereid::repeat::Model,
                        nereid::repeat::Instance, NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
