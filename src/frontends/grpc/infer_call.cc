// SPDX-License-Identifier: Apache-2.0
#include "grpc/infer_call.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/object_pool.h"
#include "base/sleep.h"
#include "common/admission.h"
#include "common/failed_inference.h"
#include "common/response_count.h"
#include "core/model.h"
#include "grpc/infer_request.h"
#include "grpc/infer_response.h"

namespace nereid::grpc {

http2::GrpcCallEvents* InferCall::Start(CallContext& context, http2::GrpcCallRef call,
                                        access::GrantRef grant) {
  InferCall* const self = base::ObjectPool<InferCall>::Take();
  self->context_ = &context;
  self->call_ = std::move(call);
  self->grant_ = std::move(grant);
  self->references_.store(1);
  NEREID_VLOG(2, "StateNew, of a call of ModelInferHandler");
  return self;
}

void InferCall::OnMessage(base::BufferRef buffer, std::string_view message) {
  // Only the first of several messages on a unary call counts.
  if (std::exchange(has_message_, true)) return;
  buffer_ = std::move(buffer);
  bytes_ = message;
}

void InferCall::OnHalfClose() {
  if (!has_message_) return call_->Finish(http2::GrpcStatus::kInternal, kUnparsableText);
  if (!message_.Parse(bytes_)) return call_->Finish(message_.refusal_status(), message_.refusal());
  if (grant_ != nullptr && !context_->gate->AllowsModel(*grant_, message_.model_name)) {
    return call_->Finish(StatusOf(access::Denial::kModel),
                         access::Gate::ModelText(*grant_, message_.model_name));
  }
  base::Status error = Submit();
  if (error.ok()) return;
  if (!was_found_ && context_->service.LoadsOnDemand(message_.model_name)) {
    references_.fetch_add(1);  // released by Resume
    phase_.store(Phase::kWaiting);
    return context_->service.AwaitModel(
        message_.model_name, message_.model_version,
        [this](const base::Result<core::ModelHandle>& model) { Resume(model.status()); });
  }
  common::LogFailedInference(message_.id, error);
  FinishWith(*call_, error);
}

// The model is pinned by the caller.
void InferCall::Resume(const base::Status& status) {
  Phase phase = Phase::kWaiting;
  if (phase_.compare_exchange_strong(phase, Phase::kResuming)) {
    const base::Status error = status.ok() ? Submit() : status;
    if (!error.ok()) {
      common::LogFailedInference(message_.id, error);
      FinishWith(*call_, error);
    }
    phase = Phase::kResuming;
    if (!phase_.compare_exchange_strong(phase, Phase::kDirect)) {
      End();  // the client went away meanwhile
    }
  }
  Unreference();
}

base::Status InferCall::Submit() {
  base::Result<core::ModelHandle> model =
      context_->service.FindModel(message_.model_name, message_.model_version);
  was_found_ = model.ok();
  if (model.ok() && (*model)->is_decoupled()) {
    model = base::UnsupportedError(
        "ModelInfer RPC doesn't support models with decoupled transaction policy");
  }
  if (!model.ok()) return model.status();
  if (const base::Status refusal =
          common::Admit(context_->budgets, *model, bytes_.size(), in_flight_);
      !refusal.ok()) [[unlikely]] {
    return refusal;
  }
  references_.fetch_add(1);  // released by OnRequestGone
  core::RequestPtr request = core::Request::Create(*this);
  request->model = std::move(*model);
  request->round = context_->rounds.Here();
  if (grant_ != nullptr) request->caller = grant_->caller;
  request->times.request_start_ns = call_->start_ns();
  request->deadline_ns = DeadlineNs(*call_);
  // A request that is refused here goes before its refusal is logged, which needs the message.
  NEREID_RETURN_IF_ERROR(Fill(*request));
  request->Hold(std::move(buffer_));
  if (request->model.follows_rules()) [[unlikely]]
    DirectRequest(*context_, *call_, *request);
  if ((trace_ = StartTrace(*context_, *call_, request->model->name())) != nullptr) [[unlikely]] {
    trace_->ReportFrontend("GRPC_WAITREAD_START", call_->start_ns());
    trace_->ReportFrontend("GRPC_WAITREAD_END", base::NowNs());
    trace_->Describe(request->model->name(), request->model->version(), request->id);
    request->trace = trace_;
  }
  expects_response_ = true;
  cancellation_.Open(*request);
  if (was_cancelled_.load()) [[unlikely]]
    if (const core::RequestRef mine = cancellation_.Take()) context_->service.Cancel(*mine);
  context_->service.Infer(std::move(request));
  return base::OkStatus();
}

base::Status InferCall::Fill(core::Request& request) {
  const base::Result<InferOptions> options =
      FillRequest(message_, request, RegionsFor(*context_, grant_.get()));
  return options.ok() ? ForwardMetadata(*context_, *call_, request) : options.status();
}

void InferCall::Send(core::ResponsePtr response, bool is_final) {
  if (response != nullptr) ++response_count_;
  if (!is_final) {
    // The response waits until it is known to be the only one.
    // If none follows, this destroys the call.
    if (response != nullptr && response_count_ == 1) first_response_.Keep(std::move(response));
    return;
  }
  expects_response_ = false;
  // Once the stream has ended, on whichever thread, these alone keep the request and with it this
  // object.
  core::ResponsePtr first = first_response_.TakeBack();
  if (response == nullptr) response = std::move(first);
  const core::RequestRef request = common::EndFlight(cancellation_, response.get(), in_flight_);
  if (response_count_ != 1) return RefuseCount();
  if (trace_ != nullptr) [[unlikely]] {
    trace_->ReportFrontend("INFER_RESPONSE_COMPLETE", base::NowNs());
  }
  if (context_->response_delay.count() > 0) [[unlikely]]
    base::SleepFor(context_->response_delay);
  if (!response->error().ok()) {
    common::LogFailedInference(response->request().id, response->error());
    return FinishWith(*call_, response->error());
  }
  if (trace_ != nullptr) [[unlikely]]
    trace_->ReportFrontend("GRPC_SEND_START", base::NowNs());
  base::Result<http2::GrpcMessagePtr> message = EncodeInferResponse(response);
  if (!message.ok()) return FinishWith(*call_, message.status());
  // Either may end the stream, and destroy this object, before it returns.
  if (call_->wants_load()) [[unlikely]] {
    return call_->SendAndFinish(std::move(*message), LoadTrailers(*context_, *call_));
  }
  call_->SendAndFinish(std::move(*message));
}

void InferCall::RefuseCount() {
  if (context_->response_delay.count() > 0) [[unlikely]]
    base::SleepFor(context_->response_delay);
  FinishWith(*call_, common::ResponseCountError(response_count_));
}

void InferCall::OnAbandoned() { first_response_.TakeBack().reset(); }

void InferCall::OnRequestGone() {
  in_flight_.Reset();
  // The request was dropped without its last response.
  if (std::exchange(expects_response_, false)) RefuseCount();
  Unreference();
}

void InferCall::OnCancelled() {
  NEREID_VLOG(1, "Cancellation notification received for ModelInferHandler");
  was_cancelled_.store(true);
  if (const core::RequestRef request = cancellation_.Take()) context_->service.Cancel(*request);
}

void InferCall::OnDone() {
  if (phase_.load() != Phase::kDirect && phase_.exchange(Phase::kEnded) == Phase::kResuming) {
    return;  // Resume calls End
  }
  End();
}

void InferCall::End() {
  if (trace_ != nullptr) [[unlikely]] {
    if (!was_cancelled_.load()) trace_->ReportFrontend("GRPC_SEND_END", base::NowNs());
  }
  cancellation_.Close();
  Unreference();
}

void InferCall::Unreference() {
  if (references_.fetch_sub(1) == 1) {
    NEREID_VLOG(2, "StateRelease, of a call of ModelInferHandler");
    base::ObjectPool<InferCall>::Give(this);
  }
}

void InferCall::Recycle() {
  context_ = nullptr;
  call_.Reset();
  grant_.reset();
  buffer_.Reset();
  bytes_ = {};
  has_message_ = false;
  message_.Clear();
  expects_response_ = false;
  response_count_ = 0;
  was_cancelled_.store(false);
  was_found_ = false;
  phase_.store(Phase::kDirect);
  trace_.reset();
}

}  // namespace nereid::grpc
