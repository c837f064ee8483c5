// SPDX-License-Identifier: Apache-2.0
#include "isolation_backend/open_requests.h"

#include <cstring>
#include <utility>

#include "backend_kit/batch.h"
#include "backend_kit/response_line.h"

namespace nereid::isolation {

using backend::Error;
using backend::LogIfError;
using backend::Result;
using python::ModelResponse;
using python::ResponseKind;

namespace {

constexpr uint32_t kMaxStates = 1 << 16;

// Gives a state of the request's sequence its new value.
Error UpdateState(TRITONBACKEND_Request* request, const python::Tensor& value) {
  TRITONBACKEND_State* state = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_StateNew(&state, request, value.name.c_str(), value.datatype,
                                        value.shape.data(),
                                        static_cast<uint32_t>(value.shape.size())));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  NEREID_KIT_TRY(TRITONBACKEND_StateBuffer(state, &buffer, value.data.size(), &type, &id));
  if (!value.data.empty()) std::memcpy(buffer, value.data.data(), value.data.size());
  return Error(TRITONBACKEND_StateUpdate(state));
}

}  // namespace

std::optional<RequestEnding> ReadEnding(python::Reader& reader, const python::Region& region) {
  RequestEnding ending;
  ending.record = reader.Read<EndingRecord>();
  if (!reader.ok() || ending.record.ending > static_cast<uint32_t>(Ending::kRescheduled) ||
      ending.record.report > static_cast<uint32_t>(Report::kFailure) ||
      ending.record.states > kMaxStates) {
    return std::nullopt;
  }
  ending.kind = static_cast<Ending>(ending.record.ending);
  ending.report = static_cast<Report>(ending.record.report);
  for (uint32_t i = 0; i < ending.record.states; ++i) {
    std::optional<python::Tensor> state = ReadTensor(reader, region);
    if (!state) return std::nullopt;
    ending.states.push_back(*std::move(state));
  }
  return ending;
}

OpenRequest::OpenRequest(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request,
                         bool is_decoupled, uint64_t exec_start_ns,
                         backend::BackgroundWork& threads)
    : instance_(instance),
      is_decoupled_(is_decoupled),
      exec_start_ns_(exec_start_ns),
      line_(std::make_shared<backend::ResponseLine>(threads)),
      last_activity_ns_(exec_start_ns),
      source_(std::make_shared<backend::ResponseSource>(request)) {}

void OpenRequest::WhenSent(std::function<void()> action) { line_->Then(std::move(action)); }

bool OpenRequest::waits_for_client() const { return line_->is_busy(); }

void OpenRequest::NoteActivity() {
  last_activity_ns_.store(backend::NowNs(), std::memory_order_relaxed);
}

void OpenRequest::Settle(const RequestEnding& ending) {
  const backend::MutexLock lock(mutex_);
  TRITONBACKEND_Request* request = source_->request();
  if (request == nullptr) return;
  for (const python::Tensor& state : ending.states) {
    LogIfError(UpdateState(request, state), "failed to update a state");
  }
  if (ending.report == Report::kFailure) ReportFailure();
  if (ending.report != Report::kSuccess || is_counted_) return;
  is_counted_ = true;
  const EndingRecord& times = ending.record;
  LogIfError(Error(TRITONBACKEND_ModelInstanceReportStatistics(
                 instance_, request, /*success=*/true, times.exec_start_ns, times.compute_start_ns,
                 times.compute_end_ns, times.exec_end_ns)),
             "failed reporting request statistics");
}

void OpenRequest::ReportFailure() {
  TRITONBACKEND_Request* request = source_->request();
  if (request == nullptr || is_counted_) return;
  is_counted_ = true;
  const uint64_t now = backend::NowNs();
  LogIfError(Error(TRITONBACKEND_ModelInstanceReportStatistics(
                 instance_, request, /*success=*/false, exec_start_ns_, now, now, now)),
             "failed reporting request statistics");
}

void OpenRequest::Send(const ModelResponse& from, bool is_final, python::Lender* lender) {
  TRITONBACKEND_Response* response = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    if (is_closed_) return;
    auto made = source_->NewResponse();
    if (!made.ok()) return LogIfError(made.TakeError(), "failed to create a response");
    response = made.value();
    ++sent_;
    NoteActivity();
    if (is_final) is_closed_ = true;
  }
  line_->Send(response, is_final,
              from.kind == ResponseKind::kError ? Error(from.code, from.text)
                                                : python::FillResponse(response, from, lender));
}

void OpenRequest::End() {
  std::shared_ptr<backend::ResponseSource> source;
  {
    const backend::MutexLock lock(mutex_);
    if (is_closed_) return;
    if (Error error = source_->EnsureFactory(); !error.ok()) {
      return LogIfError(std::move(error), "failed to end a request");
    }
    is_closed_ = true;
    source = source_;
  }
  line_->Then([source] { LogIfError(source->SendEnd(), "failed to end a request"); });
}

void OpenRequest::Release(Ending ending) {
  if (ending == Ending::kHeld) return;
  const bool comes_again = ending == Ending::kRescheduled;
  TRITONBACKEND_Request* request = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    request = source_->request();
    if (request == nullptr) return;
    // Later responses need it.
    if (!is_closed_ && !comes_again) {
      LogIfError(source_->EnsureFactory(), "failed to create a factory");
    }
    source_->set_request(nullptr);
  }
  Error released(TRITONBACKEND_RequestRelease(request, comes_again
                                                           ? TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
                                                           : TRITONSERVER_REQUEST_RELEASE_ALL));
  {
    const backend::MutexLock lock(mutex_);
    // The server has it back, and will give it another number.
    if (released.ok() && comes_again) is_closed_ = true;
    if (!released.ok()) source_->set_request(request);
  }
  if (released.ok()) return;
  if (comes_again) return Fail(released);
  LogIfError(std::move(released), "failed to release a request");
}

void OpenRequest::SendError(const Error& error) {
  TRITONBACKEND_Response* response = nullptr;
  bool has_responded = false;
  {
    const backend::MutexLock lock(mutex_);
    if (is_closed_) return;
    ReportFailure();
    has_responded = !is_decoupled_ && sent_ > 0;
    if (!has_responded) {
      auto made = source_->NewResponse();
      if (!made.ok()) return LogIfError(made.TakeError(), "failed to create a response");
      response = made.value();
      is_closed_ = true;
    }
  }
  if (has_responded) return End();
  line_->Send(response, true, error.Copy());
}

void OpenRequest::Fail(const Error& error) {
  SendError(error);
  Release(Ending::kReleased);
}

bool OpenRequest::is_done() {
  const backend::MutexLock lock(mutex_);
  return is_closed_ && source_->request() == nullptr;
}

bool OpenRequest::IsCancelled() {
  const backend::MutexLock lock(mutex_);
  if (is_closed_) return false;
  Result<bool> is_cancelled = source_->IsCancelled();
  return is_cancelled.ok() && is_cancelled.value();
}

}  // namespace nereid::isolation
