// SPDX-License-Identifier: Apache-2.0
// The square backend, for trying out decoupled models: a request with IN = n gets n responses with
// OUT = n, and each is counted in the statistics of responses. Requests are released at once.
// Models and clients are those of Triton's backend of the same name. Parameters, all of them
// numbers:
//
//   CUSTOM_INFER_DELAY_NS    before each response
//   CUSTOM_OUTPUT_DELAY_NS   after its output is filled
//   CUSTOM_CANCEL_DELAY_NS   after the request is found cancelled
//   CUSTOM_FAIL_COUNT        how many responses before the empty ones are errors
//   CUSTOM_EMPTY_COUNT       how many of the last responses are not sent at all
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"
#include "backend_kit/responses.h"

namespace nereid::square {
namespace {

using backend::Error;
using backend::InputView;
using backend::NowNs;
using backend::ResponseSender;
using backend::Result;

// A model. Immutable.
class Model {
 public:
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                               backend::NoBackendState&) {
    NEREID_KIT_ASSIGN(const backend::ModelConfig config, backend::ModelConfig::Load(handle));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "input", {{"IN", "TYPE_INT32", {1}}}));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "output", {{"OUT", "TYPE_INT32", {1}}}));
    auto model = std::make_unique<Model>();
    model->infer_delay = std::chrono::nanoseconds(Number(config, "CUSTOM_INFER_DELAY_NS"));
    model->output_delay = std::chrono::nanoseconds(Number(config, "CUSTOM_OUTPUT_DELAY_NS"));
    model->cancel_delay = std::chrono::nanoseconds(Number(config, "CUSTOM_CANCEL_DELAY_NS"));
    model->fail_count = Number(config, "CUSTOM_FAIL_COUNT");
    model->empty_count = Number(config, "CUSTOM_EMPTY_COUNT");
    return model;
  }

  std::chrono::nanoseconds infer_delay{0};
  std::chrono::nanoseconds output_delay{0};
  std::chrono::nanoseconds cancel_delay{0};
  int64_t fail_count = 0;
  int64_t empty_count = 0;

 private:
  // A value that is not a number counts as absent.
  static int64_t Number(const backend::ModelConfig& config, const char* key) {
    const std::string text = config.Parameter(key).value_or("0");
    return std::max<int64_t>(0, std::strtoll(text.c_str(), nullptr, 10));
  }
};

// An instance. Confined to the thread that executes, except for the responses.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                  Model& model) {
    return std::make_unique<Instance>(handle, model);
  }
  Instance(TRITONBACKEND_ModelInstance* handle, const Model& model)
      : handle_(handle), model_(model) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    for (uint32_t r = 0; r < count; ++r) {
      Begin(requests[r]);
      backend::LogIfError(
          Error(TRITONBACKEND_RequestRelease(requests[r], TRITONSERVER_REQUEST_RELEASE_ALL)),
          "failed releasing request");
    }
  }

 private:
  // Starts the responses of a request, or sends an error.
  void Begin(TRITONBACKEND_Request* request) {
    auto made = ResponseSender::Create(request);
    if (!made.ok()) {
      return backend::LogIfError(made.TakeError(), "failed to create a response factory");
    }
    const auto sender = std::make_shared<const ResponseSender>(std::move(made).value());
    const auto start = [&]() -> Error {
      TRITONBACKEND_Input* input = nullptr;
      NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, "IN", &input));
      NEREID_KIT_ASSIGN(const InputView view, backend::ReadInput(input));
      int32_t count = 0;
      if (view.byte_size != sizeof(count)) {
        return Error::InvalidArgument("unexpected shape for IN input");
      }
      NEREID_KIT_TRY(backend::CopyInput(view, {reinterpret_cast<char*>(&count), sizeof(count)}));
      const size_t rank = view.shape.size();
      responses_.Start([this, sender, count, rank] { SendAll(*sender, count, rank); });
      return {};
    };
    if (Error error = start(); !error.ok()) {
      sender->Fail(std::move(error));
    }
  }

  void SendAll(const ResponseSender& sender, int32_t count, size_t rank) const {
    const std::vector<int64_t> shape(rank, 1);
    for (int32_t i = 0; i < count; ++i) {
      const uint64_t start_ns = NowNs();
      // As in Triton's backend, cancellation is checked only between responses, so that a response
      // once begun is sent and counted.
      if (sender.IsCancelled()) {
        std::this_thread::sleep_for(model_.cancel_delay);
        const Error cancelled(TRITONSERVER_ERROR_CANCELLED, "cancelled");
        sender.Report(handle_, start_ns, 0, NowNs(), cancelled.get());
        break;
      }
      std::this_thread::sleep_for(model_.infer_delay);
      const bool is_empty = i + model_.empty_count >= count;
      const bool fails = !is_empty && i + model_.empty_count + model_.fail_count >= count;
      const Error failure =
          fails ? Error(TRITONSERVER_ERROR_UNKNOWN, "simulated failure") : Error();
      uint64_t output_start_ns = 0;
      TRITONBACKEND_Response* response = nullptr;
      if (!is_empty) {
        output_start_ns = NowNs();
        auto filled = Fill(sender, count, shape);
        if (!filled.ok()) {
          return sender.Fail(filled.TakeError());
        }
        response = filled.value();
        std::this_thread::sleep_for(model_.output_delay);
      }
      const uint64_t end_ns = NowNs();
      // Counted first, so that a client with the response finds it counted.
      sender.Report(handle_, start_ns, output_start_ns, end_ns, failure.get());
      if (response != nullptr) {
        ResponseSender::Send(response, failure.get());
      }
    }
    sender.End();
  }

  static Result<TRITONBACKEND_Response*> Fill(const ResponseSender& sender, int32_t value,
                                              std::span<const int64_t> shape) {
    NEREID_KIT_ASSIGN(TRITONBACKEND_Response* const response, sender.New());
    auto buffer =
        backend::AddOutput(response, "OUT", TRITONSERVER_TYPE_INT32, shape, sizeof(value));
    if (!buffer.ok()) {
      Error(TRITONBACKEND_ResponseDelete(response)).Ignore();
      return buffer.TakeError();
    }
    std::memcpy(buffer.value(), &value, sizeof(value));
    return response;
  }

  TRITONBACKEND_ModelInstance* const handle_;
  const Model& model_;
  backend::BackgroundWork responses_;
};

}  // namespace
}  // namespace nereid::square

NEREID_KIT_ENTRY_POINTS(nereid::backend::NoBackendState, nereid::square::Model,
                        nereid::square::Instance, NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
