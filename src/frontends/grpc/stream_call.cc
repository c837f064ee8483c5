// SPDX-License-Identifier: Apache-2.0
// Order is kept without sending under the lock: one thread at a time drains (is_draining_); any
// other thread leaves its message in the list. Sending may call back into OnMessage, so the lock
// must not be held then.
#include "grpc/stream_call.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/no_wait.h"
#include "base/object_pool.h"
#include "common/admission.h"
#include "common/failed_inference.h"
#include "common/response_count.h"
#include "core/model.h"
#include "grpc/infer_request.h"
#include "grpc/infer_response.h"

namespace nereid::grpc {

http2::GrpcCallEvents* StreamCall::Start(CallContext& context, http2::GrpcCallRef call,
                                         access::GrantRef grant, uint64_t generation) {
  StreamCall* const self = base::ObjectPool<StreamCall>::Take();
  self->context_ = &context;
  self->errors_end_stream_ = call->Metadata("triton_grpc_error") == "true";
  self->call_ = std::move(call);
  self->sender_ = {.grant = std::move(grant), .generation = generation};
  self->references_.store(1);
  NEREID_VLOG(2, "StateNew, of a call of ModelStreamInferHandler");
  return self;
}

bool StreamCall::IsStillAdmitted() {
  if (sender_.grant == nullptr || context_->gate->IsCurrent(*sender_.grant, sender_.generation))
      [[likely]]
    return true;
  sender_.generation = context_->gate->generation();
  access::Admission admission =
      context_->gate->Admit(CallSender(*call_), access::Scope::kInfer, /*model=*/{});
  if (admission.denial) {
    EndWith(StatusOf(*admission.denial), admission.text);
    return false;
  }
  sender_.grant = std::move(admission.grant);
  return true;
}

void StreamCall::OnMessage(base::BufferRef buffer, std::string_view message) {
  if (is_ended_.load() || !IsStillAdmitted()) return;
  if (!message_.Parse(message)) {
    return EndWith(message_.refusal_status(), message_.refusal());
  }
  if (IsCrammed()) [[unlikely]] {
    return EndWith(
        base::UnavailableError(fmt::format("the stream has {} requests in progress, the most that "
                                           "--max-requests-per-connection allows",
                                           context_->stream_limits.most_requests)));
  }
  StreamRequest* const request = base::ObjectPool<StreamRequest>::Take();
  references_.fetch_add(1);
  request->stream_ = this;
  request->message_bytes_ = message.size();
  request->id_ = message_.id;
  request->model_name_ = message_.model_name;
  request->model_version_ = message_.model_version;
  request->references_.store(2);  // the list and this function
  {
    base::MutexLock lock(mutex_);
    requests_.PushBack(*request);
  }
  const bool is_allowed =
      sender_.grant == nullptr || context_->gate->AllowsModel(*sender_.grant, request->model_name_);
  const base::Status error =
      is_allowed
          ? Submit(std::move(buffer), message, *request)
          : base::UnavailableError(access::Gate::ModelText(*sender_.grant, request->model_name_));
  if (!error.ok()) Refuse(*request, error, is_allowed);
  request->Unreference();
}

void StreamCall::Refuse(StreamRequest& request, const base::Status& error, bool is_allowed) {
  common::LogFailedInference(request.id_, error);
  if (errors_end_stream_ && !is_allowed) {
    EndWith(StatusOf(access::Denial::kModel), error.message());
  }
  if (errors_end_stream_) EndWith(error);
  // The error refers to the request only by its id.
  Deliver(request, EncodeStreamNotice({.error = error.message(), .id = request.id_}), true);
}

base::Status StreamCall::Submit(base::BufferRef buffer, std::string_view bytes,
                                StreamRequest& request) {
  if (context_->ends_streams.load()) {
    return base::UnavailableError(std::string(kStoppingText));
  }
  service::Service& service = context_->service;
  base::Result<core::ModelHandle> model =
      service.FindModel(message_.model_name, message_.model_version);
  if (parked_.may_have_some() || (!model.ok() && service.LoadsOnDemand(message_.model_name)))
      [[unlikely]] {
    using enum ParkedRequests::Outcome;
    ParkedRequest parked{std::move(buffer), bytes, sender_.grant, &request};
    request.references_.fetch_add(1);  // released by Resume
    const ParkedRequests::Outcome outcome = parked_.Park(request.model_name_, model.ok(), parked);
    if (outcome == kFirst) AwaitModel();
    if (outcome != kNotParked) return base::OkStatus();
    buffer = std::move(parked.buffer);
    request.references_.fetch_sub(1);
  }
  if (!model.ok()) return model.status();
  return SubmitNow(std::move(buffer), sender_.grant, message_, *std::move(model), request);
}

void StreamCall::AwaitModel() {
  references_.fetch_add(1);  // released by Resume
  // Of no version: the requests that wait may name others than the first one does.
  context_->service.AwaitModel(
      message_.model_name, {},
      [this, name = std::string(message_.model_name)](
          const base::Result<core::ModelHandle>& found) { Resume(name, found); });
}

void StreamCall::Resume(const std::string& model, const base::Result<core::ModelHandle>& found) {
  while (ParkedRequest* const parked = parked_.Front(model)) {
    StreamRequest& request = *parked->request;
    if (is_ended_.load()) {
      Deliver(request, nullptr, true);
    } else if (const base::Status error = SubmitParked(*parked, found); !error.ok()) {
      Refuse(request, error);
    }
    parked_.Pop(model);
    request.Unreference();
  }
  Unreference();
}

base::Status StreamCall::SubmitParked(ParkedRequest& parked,
                                      const base::Result<core::ModelHandle>& found) {
  InferMessage message;
  if (!message.Parse(parked.bytes)) return base::InternalError(std::string(message.refusal()));
  base::Result<core::ModelHandle> model =
      context_->service.FindModel(message.model_name, message.model_version);
  // Of a model that is not loaded, `found` says why.
  if (!model.ok()) return found.ok() ? model.status() : found.status();
  return SubmitNow(std::move(parked.buffer), parked.grant, message, *std::move(model),
                   *parked.request);
}

base::Status StreamCall::SubmitNow(base::BufferRef buffer, const access::GrantRef& grant,
                                   InferMessage& message, core::ModelHandle model,
                                   StreamRequest& request) {
  {
    // The request is in the list already, where the sender of another request's response reads
    // this.
    base::MutexLock lock(mutex_);
    request.is_decoupled_ = model->is_decoupled();
  }
  NEREID_RETURN_IF_ERROR(
      common::Admit(context_->budgets, model, request.message_bytes_, request.in_flight_));
  request.references_.fetch_add(1);  // released by OnRequestGone
  core::RequestPtr inference = core::Request::Create(request);
  inference->model = std::move(model);
  inference->Hold(std::move(buffer));
  inference->round = context_->rounds.Here();
  if (grant != nullptr) inference->caller = grant->caller;
  inference->times.request_start_ns = base::NowNs();
  inference->deadline_ns = DeadlineNs(*call_);
  NEREID_ASSIGN_OR_RETURN(const InferOptions options,
                          FillRequest(message, *inference, RegionsFor(*context_, grant.get())));
  NEREID_RETURN_IF_ERROR(ForwardMetadata(*context_, *call_, *inference));
  if (inference->model.follows_rules()) [[unlikely]]
    DirectRequest(*context_, *call_, *inference);
  request.wants_empty_final_ = options.wants_empty_final_response;
  if ((request.trace_ = StartTrace(*context_, *call_, inference->model->name())) != nullptr)
      [[unlikely]] {
    request.trace_->ReportFrontend("GRPC_WAITREAD_START", call_->start_ns());
    request.trace_->ReportFrontend("GRPC_WAITREAD_END", inference->times.request_start_ns);
    request.trace_->Describe(inference->model->name(), inference->model->version(), inference->id);
    inference->trace = request.trace_;
  }
  request.expects_final_ = true;
  request.cancellation_.Open(*inference);
  if (is_ended_.load()) [[unlikely]]
    if (const core::RequestRef mine = request.cancellation_.Take()) context_->service.Cancel(*mine);
  context_->service.Infer(std::move(inference));
  return base::OkStatus();
}

bool StreamCall::IsFull() const {
  const StreamLimits& limits = context_->stream_limits;
  return call_->unsent_messages() >= limits.most_unsent_responses ||
         call_->unsent_bytes() >= limits.most_unsent_bytes;
}

void StreamCall::WaitForRoom() {
  if (!IsFull() || base::NoWaitScope::IsHere()) return;
  bool was_in_vain = false;
  {
    base::MutexLock lock(mutex_);
    call_->WantSent(true);  // from here on every message that leaves is counted
    while (!is_ended_.load() && IsFull() && !was_in_vain) {
      const uint64_t seen = sent_count_;
      const base::TimePoint deadline =
          std::chrono::steady_clock::now() + context_->stream_limits.longest_pause;
      while (!is_ended_.load() && IsFull() && sent_count_ == seen && !was_in_vain) {
        was_in_vain = !sent_.WaitUntil(mutex_, deadline);
      }
    }
  }
  if (!was_in_vain || !End()) return;
  NEREID_VLOG(1, "a stream is given up: its client does not read");
  call_->Abort(http2::GrpcStatus::kUnavailable,
               "the stream was given up: its client does not read");
  CancelAll();
}

void StreamCall::OnSent() {
  base::MutexLock lock(mutex_);
  ++sent_count_;
  sent_.NotifyAll();
}

bool StreamRequest::WouldWait() { return is_decoupled_ && stream_->WouldWait(); }

void StreamRequest::AwaitRoom(const core::Request& /*request*/) {
  if (is_decoupled_) stream_->WaitForRoom();
}

void StreamRequest::Send(core::ResponsePtr response, bool is_final) {
  if (is_final) {
    expects_final_ = false;
    if (response != nullptr) common::EndFlight(response->request().model, in_flight_);
  }
  // Only the first response of a model that is not decoupled counts.
  if (!is_decoupled_ && has_responded_) {
    if (!is_final) return;
    response.reset();
  }
  if (is_decoupled_ && response != nullptr && response->error().ok()) stream_->WaitForRoom();
  http2::GrpcMessagePtr message;
  base::Status error;
  if (trace_ != nullptr && response != nullptr) [[unlikely]] {
    trace_->ReportFrontend("INFER_RESPONSE_COMPLETE", base::NowNs());
    trace_->ReportFrontend("GRPC_SEND_START", base::NowNs());
  }
  const bool is_data = response != nullptr;
  if (response != nullptr) {
    has_responded_ = true;
    error = response->error();
    if (error.ok()) {
      base::Result<http2::GrpcMessagePtr> encoded = EncodeStreamResponse(response, is_final);
      if (encoded.ok()) {
        message = std::move(*encoded);
      } else {
        error = encoded.status();
      }
    }
    // If more is to come, this may be what keeps the request, without which there is no more.
    if (is_final) response.reset();
  } else if (is_final && is_decoupled_ && wants_empty_final_) {
    message = EncodeStreamNotice({.error = {},
                                  .id = id_,
                                  .model_name = model_name_,
                                  .model_version = model_version_,
                                  .is_final = true});
  } else if (is_final && !is_decoupled_ && !has_responded_) {
    error = common::ResponseCountError(0);
  }
  if (!error.ok()) {
    common::LogFailedInference(id_, error);
    if (stream_->errors_end_stream_) stream_->EndWith(error);
    message = EncodeStreamNotice({.error = error.message(),
                                  .id = id_,
                                  .model_name = model_name_,
                                  .model_version = model_version_,
                                  .is_final = is_final});
  }
  // This object may be gone once the last message has been delivered.
  const std::shared_ptr<observe::Trace> trace = is_final ? std::move(trace_) : trace_;
  stream_->Deliver(*this, std::move(message), is_final);
  if (trace != nullptr && is_data) [[unlikely]]
    trace->ReportFrontend("GRPC_SEND_END", base::NowNs());
}

void StreamRequest::OnRequestGone() {
  in_flight_.Reset();
  // The request was dropped without a final response.
  if (expects_final_) Send(nullptr, true);
  Unreference();
}

void StreamCall::Deliver(StreamRequest& request, http2::GrpcMessagePtr message, bool is_final) {
  // The request, and this object with it, may be destroyed as soon as it is complete and off the
  // list.
  references_.fetch_add(1);
  core::RequestRef done;
  {
    base::MutexLock lock(mutex_);
    if (message != nullptr) {
      (request.is_decoupled_ ? out_of_order_ : request.ready_).push_back(std::move(message));
    }
    if (is_final) {
      request.is_complete_ = true;
      done = request.cancellation_.Take();
      credit_ += request.message_bytes_;
      if (request.is_decoupled_) Unlink(request);
    }
  }
  // Of a request that ends without another response.
  if (done) common::EndFlight(done->model, request.in_flight_);
  Drain();
  done.Reset();
  Unreference();
}

bool StreamCall::TakeSendable(std::vector<http2::GrpcMessagePtr>& sendable) {
  sendable.swap(out_of_order_);
  StreamRequest* next = nullptr;
  for (StreamRequest* request = requests_.head(); request != nullptr; request = next) {
    next = request->links_.next;
    if (request->is_decoupled_) continue;  // is not sent in order
    for (http2::GrpcMessagePtr& message : request->ready_) sendable.push_back(std::move(message));
    request->ready_.clear();
    if (!request->is_complete_) break;
    Unlink(*request);
  }
  return !sendable.empty();
}

bool StreamCall::IsCrammed() {
  base::MutexLock lock(mutex_);
  return requests_.size() >= context_->stream_limits.most_requests;
}

void StreamCall::Unlink(StreamRequest& request) {
  requests_.Remove(request);
  request.Unreference();
}

void StreamCall::Drain() {
  {
    base::MutexLock lock(mutex_);
    if (std::exchange(is_draining_, true)) return;
  }
  std::vector<http2::GrpcMessagePtr> sendable;
  for (;;) {
    size_t credit = 0;
    bool finish = false;
    bool is_complete = false;
    {
      base::MutexLock lock(mutex_);
      const bool has_some = TakeSendable(sendable);
      if (credit_ >= context_->stream_limits.credit_step) credit = std::exchange(credit_, 0);
      if (!has_some && credit == 0) {
        is_draining_ = false;
        finish = (is_half_closed_ || ends_when_idle_) && requests_.empty() &&
                 !std::exchange(is_finished_, true);
        if (!finish) return;
        is_complete = is_half_closed_;
      }
    }
    for (http2::GrpcMessagePtr& message : sendable) {
      if (!is_ended_.load()) call_->Send(std::move(message), std::exchange(credit, 0));
    }
    sendable.clear();
    if (credit > 0) call_->Credit(credit);
    if (finish) {
      if (is_ended_.exchange(true)) return;
      if (is_complete && call_->wants_load()) [[unlikely]] {
        return call_->Finish(http2::GrpcStatus::kOk, {}, LoadTrailers(*context_, *call_));
      }
      if (is_complete) return call_->Finish(http2::GrpcStatus::kOk, {});
      return call_->Finish(http2::GrpcStatus::kUnavailable, kStoppingText);
    }
  }
}

void StreamCall::OnDrain() {
  if (!context_->ends_streams.load()) return;
  references_.fetch_add(1);
  {
    base::MutexLock lock(mutex_);
    ends_when_idle_ = true;
  }
  Drain();
  Unreference();
}

void StreamCall::OnHalfClose() {
  references_.fetch_add(1);
  {
    base::MutexLock lock(mutex_);
    is_half_closed_ = true;
  }
  Drain();
  Unreference();
}

void StreamCall::EndWith(const base::Status& error) {
  EndWith(static_cast<http2::GrpcStatus>(common::GrpcStatus(error.code())), error.message());
}

void StreamCall::EndWith(http2::GrpcStatus status, std::string_view text) {
  if (!End()) return;
  call_->Finish(status, text);
  CancelAll();
}

bool StreamCall::End() {
  if (is_ended_.exchange(true)) return false;
  base::MutexLock lock(mutex_);
  sent_.NotifyAll();
  return true;
}

void StreamCall::CancelAll() {
  std::vector<core::RequestRef> requests;
  {
    base::MutexLock lock(mutex_);
    for (StreamRequest* request = requests_.head(); request != nullptr;
         request = request->links_.next) {
      if (core::RequestRef taken = request->cancellation_.Take()) {
        requests.push_back(std::move(taken));
      }
    }
  }
  for (const core::RequestRef& request : requests) context_->service.Cancel(*request);
}

void StreamCall::OnCancelled() {
  NEREID_VLOG(1, "Cancellation notification received for ModelStreamInferHandler");
  End();
  CancelAll();
}

void StreamCall::OnDone() {
  NEREID_VLOG(2, "StateRelease, of a call of ModelStreamInferHandler");
  Unreference();
}

void StreamCall::Unreference() {
  if (references_.fetch_sub(1) == 1) {
    base::ObjectPool<StreamCall>::Give(this);
  }
}

void StreamCall::Recycle() {
  context_ = nullptr;
  call_.Reset();
  sender_ = {};
  errors_end_stream_ = false;
  message_.Clear();
  parked_.Recycle();
  is_ended_.store(false);
  base::MutexLock lock(mutex_);
  requests_ = {};
  out_of_order_.clear();
  is_half_closed_ = false;
  ends_when_idle_ = false;
  is_draining_ = false;
  is_finished_ = false;
  credit_ = 0;
  sent_count_ = 0;
}

void StreamRequest::Unreference() {
  if (references_.fetch_sub(1) != 1) return;
  StreamCall* const stream = stream_;
  base::ObjectPool<StreamRequest>::Give(this);
  stream->Unreference();
}

void StreamRequest::Recycle() {
  stream_ = nullptr;
  is_decoupled_ = false;
  wants_empty_final_ = false;
  expects_final_ = false;
  has_responded_ = false;
  message_bytes_ = 0;
  id_.clear();
  model_name_.clear();
  model_version_.clear();
  is_complete_ = false;
  trace_.reset();
  ready_.clear();
}

}  // namespace nereid::grpc
