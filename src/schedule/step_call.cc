// SPDX-License-Identifier: Apache-2.0
#include "schedule/step_call.h"

#include <utility>

#include "base/object_pool.h"
#include "schedule/ensemble_run.h"

namespace nereid::schedule {

StepCall& StepCall::Take(EnsembleRun& starter, EnsembleFrame& read, uint32_t step) {
  StepCall& call = *base::ObjectPool<StepCall>::Take();
  call.run = &starter;
  starter.Reference();
  call.frame = &read;
  read.Reference(2);
  call.step = step;
  call.owners_.store(2, std::memory_order_relaxed);  // no other thread has it yet
  return call;
}

bool StepCall::WouldWait() { return run->WouldWait(*this); }

void StepCall::AwaitRoom(const core::Request& request) { run->AwaitRoom(*this, request); }

void StepCall::Send(core::ResponsePtr response, bool is_final) {
  if (is_final) has_ended = true;
  // The last response may destroy this call.
  run->OnResponse(*this, std::move(response), is_final);
}

void StepCall::OnPlace() { run->OnPlace(*this); }

void StepCall::OnRequestReleased(core::Request& /*request*/) {
  Settle();
  for (const uint32_t from : frame->plan().steps()[step].producers) {
    frame->source(from).DropReader();
  }
  frame->Unreference();
  run->OnInputsReleased();
}

void StepCall::OnRequestGone() {
  if (!has_ended) [[unlikely]]
    run->OnLost(*this);
  Drop();
}

void StepCall::Drop() {
  if (owners_.fetch_sub(1) != 1) return;
  EnsembleRun* const last = run;
  base::ObjectPool<StepCall>::Give(this);
  last->Unreference();
}

void StepCall::OnExecuted(const core::ComputeTimes& times) {
  run->times().Add(times);
  Settle();
}

void StepCall::Settle() {
  if (!std::exchange(is_settled_, true)) run->times().NoteSettled();
}

void StepCall::Recycle() {
  run = nullptr;
  frame = nullptr;
  has_responded = false;
  has_ended = false;
  has_place = false;
  producer = {};
  is_settled_ = false;
}

}  // namespace nereid::schedule
