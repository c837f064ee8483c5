// SPDX-License-Identifier: Apache-2.0
// All texts that clients see are those of Triton (core/src/sequence_batch_scheduler).
#include "schedule/sequence_scheduler.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/object_pool.h"
#include "core/forwarding_sink.h"
#include "core/response.h"
#include "schedule/direct_source.h"
#include "schedule/oldest_source.h"
#include "schedule/refuse.h"

namespace nereid::schedule {
namespace {

using core::FailureReason;

base::Status ExpiredError() {
  return base::UnavailableError("timeout of the corresponding sequence has been expired");
}

std::string ToText(const core::CorrelationId& id) {
  if (const auto* text = std::get_if<std::string_view>(&id)) return std::string(*text);
  return std::to_string(std::get<uint64_t>(id));
}

bool IsNone(const core::CorrelationId& id) {
  if (const auto* text = std::get_if<std::string_view>(&id)) return text->empty();
  return std::get<uint64_t>(id) == 0;
}

// Reports to the request's trace, which may call a function of an embedder, which may ask this
// scheduler something: hence without the lock, under which the time is set.
void MarkForTrace(core::Request& request) {
  if (request.trace != nullptr) [[unlikely]]
    request.MarkQueued(base::NowNs());
}

}  // namespace

// Notices when a request leaves its backend and when its last response is gone. Keeps the model,
// and with it the scheduler, because the request releases its own pin earlier.
class SequenceScheduler::Sink final : public core::ForwardingSink {
 public:
  void Open(SequenceScheduler& scheduler, Sequence& sequence, core::Request& request) {
    scheduler_ = &scheduler;
    sequence_ = &sequence;
    pin_ = request.model.Duplicate();
    PutBefore(request);
  }
  void OnRequestReleased(core::Request& request) override {
    scheduler_->OnReleased(*sequence_, request);
    next().OnRequestReleased(request);
  }
  void Recycle() {}

 protected:
  void Retire() override {
    const core::ModelHandle pin = std::move(pin_);
    scheduler_->OnGone(*sequence_);
    base::ObjectPool<Sink>::Give(this);
  }

 private:
  SequenceScheduler* scheduler_ = nullptr;
  Sequence* sequence_ = nullptr;
  core::ModelHandle pin_;
};

struct SequenceScheduler::Admission {
  base::Status error;    // why the request was refused
  std::string conflict;  // the id of a sequence that was started again before it ended
  SequenceTable::Refused cancelled;
};

SequenceScheduler::SequenceScheduler(core::Model& model, SchedulerContext context,
                                     SequenceSchedulerOptions options, size_t instance_count)
    : model_(model),
      options_(std::move(options)),
      plan_(model.config()),
      table_({.instance_count = instance_count,
              .slots_per_instance = plan_.slots_per_instance(),
              .idle_ns = plan_.idle_ns()}),
      source_(MakeSource()),
      pool_(model, *source_, context, PoolOptions()),
      timer_(std::make_unique<base::Timer>(context.timers, [this] { OnTimer(); })) {}

std::unique_ptr<SequenceSource> SequenceScheduler::MakeSource() {
  SequenceSourceOptions source{.model = model_,
                               .plan = plan_,
                               .table = table_,
                               .states = options_.states,
                               .hold_until_waiting = options_.hold_until_waiting,
                               .hold_until_backlog = options_.hold_until_backlog};
  if (plan_.is_oldest()) return std::make_unique<OldestSource>(std::move(source));
  return std::make_unique<DirectSource>(std::move(source));
}

InstancePoolOptions SequenceScheduler::PoolOptions() const {
  InstancePoolOptions pool = options_.pool;
  // A delay needs a thread that can sleep.
  if (plan_.max_queue_delay_ns() != 0) pool.inline_budget = base::nanoseconds(0);
  pool.collects_rounds = plan_.max_batch_size() > 1;
  // A cancelled request ends its sequence; one that is running keeps its place.
  pool.drops_cancelled = false;
  return pool;
}

base::Result<std::unique_ptr<SequenceScheduler>> SequenceScheduler::Create(
    core::Model& model, SchedulerContext context, SequenceSchedulerOptions options,
    std::vector<NewInstance> instances) {
  std::unique_ptr<SequenceScheduler> scheduler(
      new SequenceScheduler(model, context, std::move(options), instances.size()));
  NEREID_RETURN_IF_ERROR(scheduler->pool_.Start(std::move(instances)));
  return scheduler;
}

SequenceScheduler::~SequenceScheduler() {
  {
    base::MutexLock lock(pool_.mutex());
    is_ending_ = true;
  }
  timer_.reset();
  pool_.End();
  SequenceTable::Refused refused;
  {
    base::MutexLock lock(pool_.mutex());
    table_.RefuseAll(base::NowNs(), refused);
    NoteRefused(refused);
  }
  for (core::RequestPtr& request : refused) {
    RefusePlainly(std::move(request), FailureReason::kOther, StoppingError());
  }
}

base::Status SequenceScheduler::Prepare(core::Request& request) {
  NEREID_RETURN_IF_ERROR(plan_.CheckCorrelationId(request));
  if (request.deadline_ns != 0 && request.deadline_ns <= base::NowNs()) {
    model_.statistics().RecordRefusal(core::Refusal::kExpired);
    return DeadlineError(model_);
  }
  if (request.batch_count() > 1) {
    return base::InvalidArgumentError(
        fmt::format("inference request to model '{}' must specify batch-size 1 due to requirements "
                    "of sequence batcher",
                    model_.name()));
  }
  if (!IsNone(request.correlation_id)) return base::OkStatus();
  if (!plan_.is_iterative()) {
    return base::InvalidArgumentError(
        fmt::format("inference request to model '{}' must specify a non-zero or non-empty "
                    "correlation ID",
                    model_.name()));
  }
  return base::OkStatus();
}

base::Status SequenceScheduler::MissingStartError(const core::Request& request) const {
  return base::InvalidArgumentError(
      fmt::format("inference request for sequence {} to model '{}' must specify the START flag on "
                  "the first request of the sequence",
                  ToText(request.correlation_id), model_.name()));
}

void SequenceScheduler::Enqueue(core::RequestPtr request) {
  if (base::Status status = Prepare(*request); !status.ok()) [[unlikely]] {
    return RefusePlainly(std::move(request), FailureReason::kOther, std::move(status));
  }
  MarkForTrace(*request);
  InstancePool::Arrival arrival(*request);
  Admission admission;
  {
    base::MutexLock lock(pool_.mutex());
    Admit(request, arrival, admission);
  }
  if (!admission.conflict.empty()) [[unlikely]] {
    NEREID_LOG(
        kWarning,
        "sequence {} for model '{}' has a conflict. The previous sequence did not end before "
        "this sequence start. Previous sequence will be terminated early.",
        admission.conflict, model_.name());
  }
  if (request != nullptr) [[unlikely]] {
    return RefusePlainly(std::move(request), FailureReason::kOther, std::move(admission.error));
  }
  for (core::RequestPtr& cancelled : admission.cancelled) {
    Refuse(std::move(cancelled), FailureReason::kCancelled, CancelledError());
  }
  pool_.Finish(arrival);
}

void SequenceScheduler::Admit(core::RequestPtr& request, InstancePool::Arrival& arrival,
                              Admission& admission) {
  // Without an id (iterative only) it is a separate sequence, which no other request can join.
  const bool is_unnamed = IsNone(request->correlation_id);
  if (is_unnamed) {
    request->correlation_id = next_generated_id_.fetch_add(1);
    request->flags = core::kSequenceStart;
  }
  const bool is_start = (request->flags & core::kSequenceStart) != 0;
  if (is_start && (refuses_starts_ || pool_.is_stopping() || is_ending_)) {
    admission.error = StoppingError();
    return;
  }
  Sequence* const sequence =
      is_unnamed ? &table_.FindUnnamed() : table_.Find(request->correlation_id, is_start);
  if (sequence == nullptr) {
    admission.error = MissingStartError(*request);
    return;
  }
  if (is_start && !sequence->is_fresh()) admission.conflict = ToText(request->correlation_id);
  base::ObjectPool<Sink>::Take()->Open(*this, *sequence, *request);
  const uint64_t now_ns = base::NowNs();
  request->times.queue_start_ns = now_ns;
  core::Request& admitted = *request;
  table_.Admit(*sequence, std::move(request), now_ns);
  model_.statistics().AddPending(1);
  if (admitted.is_cancelled()) [[unlikely]] {
    // The cancellation came too early to find it here.
    table_.Cancel(*sequence, admitted, now_ns, admission.cancelled);
    NoteRefused(admission.cancelled);
  }
  SetTimer();
  pool_.Announce(arrival, now_ns);
}

void SequenceScheduler::OnCancelled(core::Request& request) {
  SequenceTable::Refused cancelled;
  {
    base::MutexLock lock(pool_.mutex());
    if (request.queue == nullptr) return;
    Sequence& sequence = Sequence::Of(request);
    // A request that a backend already has runs to its end, and so does its sequence.
    if (sequence.in_flight() == &request) return;
    table_.Cancel(sequence, request, base::NowNs(), cancelled);
    NoteRefused(cancelled);
  }
  for (core::RequestPtr& waiting : cancelled) {
    Refuse(std::move(waiting), FailureReason::kCancelled, CancelledError());
  }
}

bool SequenceScheduler::Reschedule(core::RequestPtr& request) {
  if (!plan_.is_iterative()) return false;
  request->was_rescheduled = true;
  request->RemoveServerInputs();
  request->states = nullptr;
  request->flags = 0;
  // The request returns on any thread of its backend.
  request->round = nullptr;
  MarkForTrace(*request);
  SequenceTable::Refused cancelled;
  {
    base::MutexLock lock(pool_.mutex());
    const uint64_t now_ns = base::NowNs();
    request->times.queue_start_ns = now_ns;
    Sequence& sequence = Sequence::Of(*request);
    core::Request& returned = *request;
    table_.PutBack(sequence, std::move(request), now_ns);
    model_.statistics().AddPending(1);
    if (sequence.is_aborted()) {
      table_.Abort(sequence, now_ns, cancelled);
    } else if (returned.is_cancelled()) {
      table_.Cancel(sequence, returned, now_ns, cancelled);
    }
    NoteRefused(cancelled);
    pool_.WakeForWork();
  }
  for (core::RequestPtr& waiting : cancelled) {
    Refuse(std::move(waiting), FailureReason::kCancelled, CancelledError());
  }
  return true;
}

void SequenceScheduler::OnReleased(Sequence& sequence, core::Request& request) {
  base::MutexLock lock(pool_.mutex());
  if (sequence.in_flight() != &request) return;
  const uint64_t now_ns = base::NowNs();
  table_.OnReleased(sequence, request, now_ns);
  // An iterative sequence ends when its backend does not reschedule it.
  if (plan_.is_iterative() && sequence.empty()) table_.Close(sequence, now_ns);
  SetTimer();
  NoteSequences();
  if (sequence.is_ready()) pool_.WakeForWork();
}

void SequenceScheduler::OnGone(Sequence& sequence) {
  base::MutexLock lock(pool_.mutex());
  const size_t ready = table_.ready_count();
  table_.OnGone(sequence, base::NowNs());
  SetTimer();
  NoteSequences();
  if (table_.ready_count() != ready) pool_.WakeForWork();
}

void SequenceScheduler::OnTimer() {
  SequenceTable::Refused expired;
  {
    base::MutexLock lock(pool_.mutex());
    timer_at_ns_ = 0;
    table_.Expire(base::NowNs(), expired);
    NoteRefused(expired);
    NoteSequences();
    SetTimer();
    pool_.WakeForWork();
  }
  for (core::RequestPtr& request : expired) {
    RefusePlainly(std::move(request), FailureReason::kRejected, ExpiredError());
  }
}

// A timer is not reset when its reason has gone: it fires once in vain, which costs less than a
// timer for each request.
void SequenceScheduler::SetTimer() {
  const std::optional<uint64_t> next = table_.NextExpiry();
  if (!next || is_ending_ || (timer_at_ns_ != 0 && timer_at_ns_ <= *next)) return;
  timer_at_ns_ = *next;
  timer_->ArmAt(*next);
}

void SequenceScheduler::NoteRefused(const SequenceTable::Refused& refused) {
  if (refused.empty()) return;
  model_.statistics().AddPending(-static_cast<int64_t>(refused.size()));
  pool_.NoteChange();
}

void SequenceScheduler::NoteSequences() {
  pool_.NoteRelease();
  if (refuses_starts_ && table_.sequence_count() == 0) sequences_over_.NotifyAll();
}

void SequenceScheduler::RefuseStarts() {
  base::MutexLock lock(pool_.mutex());
  refuses_starts_ = true;
}

bool SequenceScheduler::WaitForSequences(base::TimePoint deadline) {
  base::MutexLock lock(pool_.mutex());
  while (table_.sequence_count() > 0) {
    if (!sequences_over_.WaitUntil(pool_.mutex(), deadline)) return table_.sequence_count() == 0;
  }
  return true;
}

bool SequenceScheduler::Stop(base::TimePoint deadline) {
  {
    base::MutexLock lock(pool_.mutex());
    source_->StopHolding();
  }
  return pool_.Stop(deadline);
}

size_t SequenceScheduler::SequenceCount() {
  base::MutexLock lock(pool_.mutex());
  return table_.sequence_count();
}

bool SequenceScheduler::HasSequence(const core::CorrelationId& id) {
  base::MutexLock lock(pool_.mutex());
  return table_.Find(id, /*is_start=*/false) != nullptr;
}

core::SchedulerLoad SequenceScheduler::ReadLoad() {
  base::MutexLock lock(pool_.mutex());
  return {.oldest_waiting_ns = table_.waiting_count() > 0 ? table_.OldestNs() : 0,
          .instance_count = pool_.instance_count()};
}

std::optional<core::SequencesReading> SequenceScheduler::ReadSequences(size_t most) {
  core::SequencesReading reading;
  {
    base::MutexLock lock(pool_.mutex());
    reading = table_.Read(most, base::NowNs());
  }
  reading.is_oldest = plan_.is_oldest();
  return reading;
}

size_t SequenceScheduler::FreeSlotCountForTest() {
  base::MutexLock lock(pool_.mutex());
  return table_.free_slot_count();
}

}  // namespace nereid::schedule
