// SPDX-License-Identifier: Apache-2.0
// The life of a run: how events reach it, how it responds and how it ends. ensemble_steps.cc starts
// its steps.
#include "schedule/ensemble_run.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"
#include "base/no_wait.h"
#include "base/object_pool.h"
#include "schedule/refuse.h"

namespace nereid::schedule {
namespace {

// A producer of many responses waits no longer for later steps, whatever happens.
constexpr std::chrono::seconds kMaxWait{300};

// A thread that handles events of a run must not wait for the steps of another one, or for a
// client: only it can move its run on, and a place that those steps wait for may be in there.
class HandlingScope {
 public:
  HandlingScope() { ++count_; }
  ~HandlingScope() { --count_; }
  HandlingScope(const HandlingScope&) = delete;
  HandlingScope& operator=(const HandlingScope&) = delete;

  static bool IsHere() { return count_ > 0; }

 private:
  // Runs whose events this thread handles.
  static inline constinit thread_local uint32_t count_ = 0;
};

// Keeps a run, also if an exception ends the scope.
class KeepingScope {
 public:
  explicit KeepingScope(EnsembleRun& run) : run_(run) { run_.Reference(); }
  ~KeepingScope() { run_.Unreference(); }
  KeepingScope(const KeepingScope&) = delete;
  KeepingScope& operator=(const KeepingScope&) = delete;

 private:
  EnsembleRun& run_;
};

// Why a request failed, as far as the error of its step says so.
core::FailureReason ReasonOf(const base::Status& error) {
  switch (error.code()) {
    case base::StatusCode::kCancelled:
      return core::FailureReason::kCancelled;
    // What schedulers refuse has one of these.
    case base::StatusCode::kUnavailable:
    case base::StatusCode::kDeadlineExceeded:
    case base::StatusCode::kResourceExhausted:
      return core::FailureReason::kRejected;
    default:
      return core::FailureReason::kOther;
  }
}

}  // namespace

void EnsembleRun::Start(EnsembleShared& shared, core::RequestPtr request) {
  EnsembleRun& run = *base::ObjectPool<EnsembleRun>::Take();
  run.shared_ = &shared;
  run.request_ref_ = core::RequestRef(*request);
  run.home_thread_ = request->round != nullptr ? std::this_thread::get_id() : std::thread::id();
  run.request_ = std::move(request);
  run.references_ = 1;  // until Complete
  run.unreleased_ = 1;  // until Finish
  if (run.is_limited()) run.room_.Reset(shared.plan.steps().size());
  run.Post(run.begin_);
}

void EnsembleRun::Cancel() {
  Event& event = *base::ObjectPool<Event>::Take();
  event.kind = Event::Kind::kCancel;
  Post(event);
}

void EnsembleRun::Expire() {
  Event& event = *base::ObjectPool<Event>::Take();
  event.kind = Event::Kind::kExpire;
  Post(event);
}

void EnsembleRun::Unreference() {
  if (--references_ != 0) return;
  // Not within the pool: destroying the request may destroy the model and everything that is
  // shared.
  const core::RequestRef request = std::move(request_ref_);
  base::ObjectPool<EnsembleRun>::Give(this);
}

void EnsembleRun::Recycle() {
  shared_ = nullptr;
  needs_ = nullptr;
  begins_ns_ = 0;
  pending_.reset();
  is_finished_ = false;
  is_counted_ = false;
  status_ = base::OkStatus();
  times_.Reset();
}

void EnsembleRun::Post(Event& event) {
  // Handling the event may destroy its call, and the last call destroys the run.
  if (!strand_.Push(event)) return;
  const KeepingScope kept(*this);
  const HandlingScope handling;
  strand_.Drive([this](Event& next) { Handle(next); });
}

bool EnsembleRun::WouldWait(const StepCall& call) {
  const EnsembleStep& step = shared_->plan.steps()[call.step];
  if (is_limited() && step.may_wait && !room_.HasRoom(call.producer, step.behind)) return true;
  return request_ref_->sink().WouldWait();
}

void EnsembleRun::OnResponse(StepCall& call, core::ResponsePtr response, bool is_final) {
  Event& event = is_final ? call.own_event : *base::ObjectPool<Event>::Take();
  event.kind = is_final ? Event::Kind::kLastResponse : Event::Kind::kResponse;
  event.call = &call;
  event.response = std::move(response);
  if (is_final) return Post(event);
  // The request keeps the call, and that the run; the response may have been all that kept it.
  const core::RequestRef request(event.response->request());
  if (is_limited()) room_.NoteResponse(call.producer);
  Post(event);
  AwaitRoom(call, *request);
}

void EnsembleRun::OnLost(StepCall& call) {
  call.own_event.kind = Event::Kind::kLost;
  call.own_event.call = &call;
  Post(call.own_event);
}

void EnsembleRun::OnPlace(StepCall& call) {
  call.own_event.kind = Event::Kind::kPlace;
  call.own_event.call = &call;
  Post(call.own_event);
}

void EnsembleRun::Handle(Event& event) {
  // Released first: a call's own event may be destroyed with the call, or be reused meanwhile.
  StepCall* const call = event.call;
  switch (event.kind) {
    case Event::Kind::kBegin:
      return Begin();
    case Event::Kind::kLastResponse:
      return HandleResponse(*call, std::move(event.response), true);
    case Event::Kind::kResponse: {
      core::ResponsePtr response = std::move(event.response);
      base::ObjectPool<Event>::Give(&event);
      HandleResponse(*call, std::move(response), false);
      if (is_limited()) room_.NoteHandled(call->producer);
      return;
    }
    case Event::Kind::kLost:
      Fail(base::InternalError("model '" + shared_->plan.steps()[call->step].model_name +
                               "' released a request without its last response"));
      return HandleResponse(*call, nullptr, true);
    case Event::Kind::kPlace:
      return HandlePlace(*call);
    case Event::Kind::kCancel:
      base::ObjectPool<Event>::Give(&event);
      return HandleCancel();
    case Event::Kind::kExpire:
      base::ObjectPool<Event>::Give(&event);
      return HandleExpiry();
  }
}

void EnsembleRun::HandleResponse(StepCall& call, core::ResponsePtr response, bool is_final) {
  if (is_final) --in_flight_;
  if (response != nullptr && status_.ok()) {
    base::Status status =
        response->error().ok() ? TakeResponse(call, std::move(response)) : response->error();
    if (!status.ok()) Fail(status);
  }
  response.reset();
  if (is_final) EndCall(call);
  FinishIfIdle();
}

void EnsembleRun::HandlePlace(StepCall& call) {
  call.has_place = true;
  room_.NotePlaced(call.step);
  if (status_.ok()) return Submit(std::move(call.held));
  Abandon(call);
  FinishIfIdle();
}

void EnsembleRun::HandleCancel() {
  if (is_finished_) return;
  CancelInFlight();
  // Those calls respond that they were cancelled.
  if (FindHeld() == nullptr) return;
  Fail(base::CancelledError(request_->LogPrefix() + "Request cancelled"));
  FinishIfIdle();
}

void EnsembleRun::HandleExpiry() {
  const StepCall* const held = is_finished_ ? nullptr : FindHeld();
  if (held == nullptr || !status_.ok()) return;
  const base::Status error = DeadlineError(*held->held->model).WithPrefix(request_->LogPrefix());
  shared_->model.statistics().RecordRefusal(core::Refusal::kExpired);
  CancelInFlight();
  Fail(error);
  FinishIfIdle();
}

const StepCall* EnsembleRun::FindHeld() const {
  const StepCall* call = calls_.head();
  while (call != nullptr && call->held == nullptr) call = call->links.next;
  return call;
}

void EnsembleRun::CancelInFlight() {
  for (StepCall* call = calls_.head(); call != nullptr; call = call->links.next) {
    if (call->held != nullptr) continue;
    if (const core::RequestRef request = call->cancellation.Take()) {
      shared_->submitter.CancelSubmitted(*request);
    }
  }
}

void EnsembleRun::Fail(const base::Status& error) {
  if (!status_.ok()) return;
  status_ = error.WithPrefix(fmt::format("in ensemble '{}', ", shared_->model.name()));
  if (!is_limited()) return;
  for (StepCall* call = calls_.head(); call != nullptr;) {
    StepCall& held = *std::exchange(call, call->links.next);
    // Calls whose place is about to arrive end when it does.
    if (held.held == nullptr || !shared_->limiters[held.step]->Remove(held)) continue;
    room_.NotePlaced(held.step);
    Abandon(held);
  }
  room_.NoteFailed();
}

void EnsembleRun::Abandon(StepCall& call) {
  --in_flight_;
  call.has_ended = true;  // nothing is lost
  call.held.reset();
  EndCall(call);
}

void EnsembleRun::EndCall(StepCall& call) {
  calls_.Remove(call);
  if (call.has_place) shared_->limiters[call.step]->Release();
  call.cancellation.Close();
  call.frame->Unreference();
  call.Drop();
}

void EnsembleRun::FinishIfIdle() {
  if (is_finished_) return;
  if (in_flight_ == 0) return Finish();
  // A client of a model that is not decoupled waits for the end, so that there is one response.
  if (pending_ == nullptr || !shared_->plan.is_decoupled()) return;
  request_->NoteResponse(*pending_);
  StepLimiter::HandOver();  // a client in this process may wait for something
  const base::NoWaitScope no_wait;
  request_->sink().Send(std::move(pending_), false);
}

void EnsembleRun::Finish() {
  is_finished_ = true;
  if (is_limited() && request_->deadline_ns != 0) shared_->deadlines->Remove(*this);
  if (status_.ok() && pending_ == nullptr && !shared_->plan.is_decoupled()) {
    Fail(base::InvalidArgumentError(
        request_->LogPrefix() +
        "unexpected deadlock, at least one output is not set while no more ensemble steps can be "
        "made"));
  }
  if (!status_.ok()) {
    pending_ = core::Response::Create(*request_);
    pending_->SetError(status_);
  }
  // Counted before the response if possible, so that a client that has its response is counted.
  if (!status_.ok() || times_.IsComplete()) Count();
  if (pending_ != nullptr) request_->NoteResponse(*pending_);
  if (shared_->plan.is_decoupled()) StepLimiter::HandOver();
  {
    const base::NoWaitScope no_wait;
    request_->sink().Send(std::move(pending_), true);
  }
  OnInputsReleased();
}

void EnsembleRun::OnInputsReleased() {
  if (--unreleased_ == 0) Complete();
}

void EnsembleRun::Complete() {
  if (!is_counted_) Count();
  shared_->runs->Remove(*this);
  request_.reset();
  Unreference();
}

void EnsembleRun::Count() {
  is_counted_ = true;
  core::ModelStatistics& statistics = shared_->model.statistics();
  core::Request& request = *request_;
  const uint64_t now_ns = base::NowNs();
  if (!status_.ok()) {
    return statistics.RecordFailure(ReasonOf(status_), request.times.request_start_ns, now_ns);
  }
  const core::ComputeTimes times = times_.Sum(request.times.queue_start_ns);
  statistics.RecordSuccess(request.batch_count(), request.times.request_start_ns,
                           request.times.queue_start_ns, times, now_ns);
  statistics.RecordExecution(request.batch_count(), times, now_ns);
  request.sink().OnExecuted(times);
}

void EnsembleRun::AwaitRoom(const StepCall& call, const core::Request& request) {
  // A reactor never waits. Within the run itself a wait would stop all progress.
  const EnsembleStep& step = shared_->plan.steps()[call.step];
  if (!step.is_decoupled || base::NoWaitScope::IsHere() || HandlingScope::IsHere() ||
      strand_.IsDriver()) {
    return;
  }
  if (is_limited() && step.may_wait) AwaitSteps(call, request);
  request_ref_->sink().AwaitRoom(*request_ref_);
}

void EnsembleRun::AwaitSteps(const StepCall& call, const core::Request& request) {
  const EnsembleStep& step = shared_->plan.steps()[call.step];
  if (room_.HasRoom(call.producer, step.behind)) return;
  // The models behind may wait for this one in another ensemble.
  if (!shared_->producer_waits.Begin(step.waits)) return;
  StepLimiter::HandOver();
  const base::TimePoint deadline = std::chrono::steady_clock::now() + kMaxWait;
  const bool has_room = room_.Wait(call.producer, step.behind, request, deadline);
  shared_->producer_waits.End(step.waits);
  if (has_room) return;
  NEREID_LOG(
      kError,
      "ensemble '{}': responses of model '{}' have waited {} s for the next steps; from now on it "
      "may run ahead of them, which takes memory",
      shared_->model.name(), step.model_name, kMaxWait.count());
}

}  // namespace nereid::schedule
