// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_run.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/object_pool.h"
#include "schedule/ensemble_scheduler.h"

namespace nereid::schedule {
namespace {

// A producer of many answers waits no longer for those behind it, whatever happens.
constexpr std::chrono::seconds kLongestWait{300};

std::thread::id ThisThread() { return std::this_thread::get_id(); }

// The end of the list in an inbox that has a driver; not an event.
EnsembleEvent* Driven() {
  alignas(EnsembleEvent) static constinit char mark = 0;
  return reinterpret_cast<EnsembleEvent*>(&mark);
}

}  // namespace

// Starts the calls that got a place in a limiter, one after another: starting one may end another,
// whose place goes on, and the stack must not grow with that.
class PlacesGiven {
 public:
  static void Give(StepCall& call) {
    static thread_local PlacesGiven mine;
    call.waits_behind_ = nullptr;
    (mine.tail_ != nullptr ? mine.tail_->waits_behind_ : mine.head_) = &call;
    mine.tail_ = &call;
    if (mine.is_active_) return;
    mine.is_active_ = true;
    while (mine.head_ != nullptr) {
      StepCall& next = *mine.head_;
      mine.head_ = next.waits_behind_;
      if (mine.head_ == nullptr) mine.tail_ = nullptr;
      next.run_->OnPlace(next);
    }
    mine.is_active_ = false;
  }

 private:
  StepCall* head_ = nullptr;
  StepCall* tail_ = nullptr;
  bool is_active_ = false;
};

void StepCall::Send(core::ResponsePtr response, bool is_final) {
  // Gone with its final answer, perhaps.
  EnsembleRun& run = *run_;
  if (is_final || run.shared_->limiters.empty()) {
    return run.Deliver(*this, std::move(response), is_final);
  }
  run.Deliver(*this, std::move(response), false);
  run.WaitForRoom(*this);
}

void StepCall::OnRequestReleased(core::Request& /*request*/) {
  Settle();
  for (const uint32_t producer : run_->shared_->plan.steps()[step_].producers) {
    frame_->source(producer).DropReader();
  }
  frame_->Unreference();
  run_->OnInputsReleased();
}

void StepCall::OnRequestGone() {
  EnsembleRun* const run = run_;
  base::ObjectPool<StepCall>::Give(this);
  run->Unreference();
}

void StepCall::OnExecuted(const core::ComputeTimes& times) {
  const auto add = [](std::atomic<uint64_t>& sum, uint64_t start, uint64_t end) {
    if (end > start) sum.fetch_add(end - start, std::memory_order_relaxed);
  };
  add(run_->compute_input_ns_, times.compute_start_ns, times.compute_input_end_ns);
  add(run_->compute_infer_ns_, times.compute_input_end_ns, times.compute_output_start_ns);
  add(run_->compute_output_ns_, times.compute_output_start_ns, times.compute_end_ns);
  Settle();
}

void StepCall::Settle() {
  if (!is_settled_.exchange(true, std::memory_order_relaxed)) {
    run_->unsettled_.fetch_sub(1, std::memory_order_release);
  }
}

void StepCall::Recycle() {
  run_ = nullptr;
  frame_ = nullptr;
  has_answered_ = false;
  has_place_ = false;
  is_settled_.store(false, std::memory_order_relaxed);
  queued_count_ = 0;
  correlation_id_ = uint64_t{0};
  flags_ = 0;
  previous_ = next_ = nullptr;
  waits_before_ = waits_behind_ = nullptr;
}

void EnsembleRun::Start(EnsembleShared& shared, core::RequestPtr request) {
  EnsembleRun& run = *base::ObjectPool<EnsembleRun>::Take();
  run.shared_ = &shared;
  run.request_ref_ = core::RequestRef(*request);
  run.home_thread_ = request->round != nullptr ? ThisThread() : std::thread::id();
  run.request_ = std::move(request);
  run.references_.store(2, std::memory_order_relaxed);  // until Complete, and here
  run.unreleased_.store(1, std::memory_order_relaxed);
  run.driver_.store(ThisThread(), std::memory_order_relaxed);
  run.inbox_.store(Driven(), std::memory_order_relaxed);
  if (!shared.limiters.empty()) {
    base::MutexLock lock(run.mutex_);
    run.has_failed_ = false;
  }
  shared.runs->Add(run, *run.request_);
  run.Begin();
  run.Drive();
  run.Unreference();
}

void EnsembleRun::Cancel() {
  core::ResponsePtr none;
  if (!BecomeDriver(Kind::kCancel, nullptr, none, false)) return;
  HandleCancel();
  Drive();
}

void EnsembleRun::Unreference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Not within the pool: the model, and with it all that is shared, may go with the request.
  const core::RequestRef request = std::move(request_ref_);
  base::ObjectPool<EnsembleRun>::Give(this);
}

void EnsembleRun::Recycle() {
  shared_ = nullptr;
  needs_ = nullptr;
  begins_ns_ = 0;
  pending_.reset();
  has_sent_ = false;
  is_finished_ = false;
  is_counted_ = false;
  status_ = base::OkStatus();
  unsettled_.store(0, std::memory_order_relaxed);
  compute_input_ns_.store(0, std::memory_order_relaxed);
  compute_infer_ns_.store(0, std::memory_order_relaxed);
  compute_output_ns_.store(0, std::memory_order_relaxed);
}

bool EnsembleRun::BecomeDriver(Kind kind, StepCall* call, core::ResponsePtr& response,
                               bool is_final) {
  const bool is_mine = driver_.load(std::memory_order_relaxed) == ThisThread();
  Event* first = nullptr;
  if (!is_mine && inbox_.compare_exchange_strong(first, Driven(), std::memory_order_acquire)) {
    driver_.store(ThisThread(), std::memory_order_relaxed);
    return true;
  }
  // The final answer of a call needs no event of its own: there is one.
  Event* const event = is_final ? &call->final_answer_ : base::ObjectPool<Event>::Take();
  event->kind = kind;
  event->call = call;
  event->response = std::move(response);
  event->is_final = is_final;
  const bool is_counted = kind == Kind::kAnswer && !is_final && !shared_->limiters.empty();
  if (is_counted) {
    base::MutexLock lock(mutex_);
    ++call->queued_count_;
  }
  if (is_mine) {
    // An earlier answer of the same call may have come from another thread.
    TakeInbox();
    Append(*event);
    return false;
  }
  for (;;) {
    if (first != nullptr) {
      event->next = first;
      if (inbox_.compare_exchange_weak(first, event, std::memory_order_release)) return false;
    } else if (inbox_.compare_exchange_weak(first, Driven(), std::memory_order_acquire)) {
      break;  // the driver has just gone
    }
  }
  driver_.store(ThisThread(), std::memory_order_relaxed);
  TakeInbox();
  Append(*event);
  Reference();
  Drive();
  Unreference();
  return false;
}

void EnsembleRun::Append(Event& event) {
  event.next = nullptr;
  (last_event_ != nullptr ? last_event_->next : first_event_) = &event;
  last_event_ = &event;
}

void EnsembleRun::TakeInbox() {
  if (inbox_.load(std::memory_order_relaxed) == Driven()) return;
  Event* latest = inbox_.exchange(Driven(), std::memory_order_acquire);
  Event* earliest = nullptr;
  while (latest != Driven()) {
    Event* const event = std::exchange(latest, latest->next);
    event->next = std::exchange(earliest, event);
  }
  while (earliest != nullptr) Append(*std::exchange(earliest, earliest->next));
}

void EnsembleRun::Drive() {
  for (;;) {
    if (first_event_ == nullptr) TakeInbox();
    Event* const event = first_event_;
    if (event == nullptr) {
      driver_.store({}, std::memory_order_relaxed);
      Event* driven = Driven();
      if (inbox_.compare_exchange_strong(driven, nullptr, std::memory_order_release)) return;
      driver_.store(ThisThread(), std::memory_order_relaxed);
      continue;
    }
    first_event_ = event->next;
    if (first_event_ == nullptr) last_event_ = nullptr;
    // The event may go with its call.
    const Kind kind = event->kind;
    StepCall* const call = event->call;
    const bool is_final = event->is_final;
    core::ResponsePtr response = std::move(event->response);
    if (!is_final) base::ObjectPool<Event>::Give(event);
    switch (kind) {
      case Kind::kAnswer:
        HandleAnswer(*call, std::move(response), is_final);
        // A call that has not ended is in flight, and may wait for this.
        if (!is_final && !shared_->limiters.empty()) {
          base::MutexLock lock(mutex_);
          if (--call->queued_count_ == 0) room_.NotifyAll();
        }
        break;
      case Kind::kPlace:
        HandlePlace(*call);
        break;
      case Kind::kCancel:
        HandleCancel();
        break;
    }
  }
}

void EnsembleRun::Deliver(StepCall& call, core::ResponsePtr response, bool is_final) {
  if (!BecomeDriver(Kind::kAnswer, &call, response, is_final)) return;
  Reference();  // the call's own goes with its request
  HandleAnswer(call, std::move(response), is_final);
  Drive();
  Unreference();
}

void EnsembleRun::OnPlace(StepCall& call) {
  core::ResponsePtr none;
  if (!BecomeDriver(Kind::kPlace, &call, none, false)) return;
  Reference();
  HandlePlace(call);
  Drive();
  Unreference();
}

void EnsembleRun::HandleAnswer(StepCall& call, core::ResponsePtr response, bool is_final) {
  if (is_final) --in_flight_;
  if (response != nullptr && status_.ok()) {
    base::Status status =
        response->error().ok() ? TakeAnswer(call, std::move(response)) : response->error();
    if (!status.ok()) Fail(std::move(status));
  }
  response.reset();
  if (is_final) EndCall(call);
  FinishIfIdle();
}

void EnsembleRun::HandlePlace(StepCall& call) {
  call.has_place_ = true;
  ChangeHeld(-1);
  if (status_.ok()) {
    shared_->submitter.Submit(std::move(call.held_));
    return;
  }
  Abandon(call);
  FinishIfIdle();
}

void EnsembleRun::HandleCancel() {
  if (is_finished_) return;
  bool is_held = false;
  for (StepCall* call = calls_; call != nullptr; call = call->next_) {
    if (call->held_ != nullptr) {
      is_held = true;
    } else {
      shared_->submitter.CancelSubmitted(*call->in_flight_);
    }
  }
  // The others answer that they were cancelled.
  if (!is_held) return;
  Fail(base::CancelledError(request_->LogPrefix() + "Request cancelled"));
  FinishIfIdle();
}

void EnsembleRun::Fail(base::Status error) {
  if (!status_.ok()) return;
  status_ = error.WithPrefix(fmt::format("in ensemble '{}', ", shared_->model.name()));
  if (shared_->limiters.empty()) return;
  for (StepCall* call = calls_; call != nullptr;) {
    StepCall& held = *std::exchange(call, call->next_);
    // Those whose place is on its way end when it comes.
    if (held.held_ == nullptr || !shared_->limiters[held.step_]->Remove(held)) continue;
    ChangeHeld(-1);
    Abandon(held);
  }
  base::MutexLock lock(mutex_);
  has_failed_ = true;
  room_.NotifyAll();
}

void EnsembleRun::Abandon(StepCall& call) {
  --in_flight_;
  call.held_.reset();
  EndCall(call);
}

void EnsembleRun::EndCall(StepCall& call) {
  (call.previous_ != nullptr ? call.previous_->next_ : calls_) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
  if (call.has_place_) {
    StepCall* const next = shared_->limiters[call.step_]->Release();
    if (next != nullptr) PlacesGiven::Give(*next);
  }
  EnsembleFrame& frame = *call.frame_;
  // The call may go with it.
  const core::RequestRef last = std::move(call.in_flight_);
  frame.Unreference();
}

void EnsembleRun::FinishIfIdle() {
  if (is_finished_) return;
  if (in_flight_ == 0) return Finish();
  // A client of a model that answers once waits for the end, so that there is one answer.
  if (pending_ == nullptr || !shared_->plan.is_decoupled()) return;
  has_sent_ = true;
  request_->NoteResponse(*pending_);
  request_->sink().Send(std::move(pending_), false);
}

void EnsembleRun::Finish() {
  is_finished_ = true;
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
  // Before the answer where that is possible: a client that has it finds itself counted.
  if (!status_.ok() || unsettled_.load(std::memory_order_acquire) == 0) Count();
  if (pending_ != nullptr) request_->NoteResponse(*pending_);
  request_->sink().Send(std::move(pending_), true);
  OnInputsReleased();
}

void EnsembleRun::OnInputsReleased() {
  if (unreleased_.fetch_sub(1, std::memory_order_acq_rel) == 1) Complete();
}

void EnsembleRun::Complete() {
  if (!is_counted_) Count();
  shared_->runs->Remove(*this, *request_);
  request_.reset();
  Unreference();
}

void EnsembleRun::Count() {
  is_counted_ = true;
  core::ModelStatistics& statistics = shared_->model.statistics();
  core::Request& request = *request_;
  if (status_.ok()) {
    // Only the durations are known; they are laid end to end.
    core::ComputeTimes times;
    times.compute_start_ns = request.times.queue_start_ns;
    times.compute_input_end_ns = times.compute_start_ns + compute_input_ns_.load();
    times.compute_output_start_ns = times.compute_input_end_ns + compute_infer_ns_.load();
    times.compute_end_ns = times.compute_output_start_ns + compute_output_ns_.load();
    const uint64_t now_ns = base::NowNs();
    statistics.RecordSuccess(request.batch_count(), request.times.request_start_ns,
                             request.times.queue_start_ns, times, now_ns);
    statistics.RecordExecution(request.batch_count(), times, now_ns);
    request.sink().OnExecuted(times);
  } else {
    statistics.RecordFailure(core::FailureReason::kOther, request.times.request_start_ns,
                             base::NowNs());
  }
}

void EnsembleRun::ChangeHeld(int by) {
  base::MutexLock lock(mutex_);
  held_count_ = static_cast<uint32_t>(static_cast<int>(held_count_) + by);
  if (held_count_ == 0) room_.NotifyAll();
}

bool EnsembleRun::IsHome() const { return home_thread_ == ThisThread(); }

void EnsembleRun::WaitForRoom(const StepCall& call) {
  // A reactor never waits, nor an instance that the steps behind need: what they wait for may be
  // them.
  if (IsHome() || !shared_->plan.steps()[call.step_].may_wait) return;
  const base::TimePoint deadline = std::chrono::steady_clock::now() + kLongestWait;
  if (driver_.load(std::memory_order_relaxed) == ThisThread()) return;  // within the run itself
  base::MutexLock lock(mutex_);
  // Until its answer has been seen to, and everything that waits has a place.
  while (call.queued_count_ > 0 ||
         (held_count_ > 0 && !has_failed_ && !call.in_flight_->is_cancelled())) {
    if (room_.WaitUntil(mutex_, deadline)) continue;
    NEREID_LOG(
        kError,
        "ensemble '{}': answers of model '{}' have waited {} s for the steps behind it; more "
        "are taken in",
        shared_->model.name(), shared_->plan.steps()[call.step_].model_name, kLongestWait.count());
    return;
  }
}

}  // namespace nereid::schedule
