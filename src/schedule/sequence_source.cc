// SPDX-License-Identifier: Apache-2.0
#include "schedule/sequence_source.h"

namespace nereid::schedule {

SequenceSource::SequenceSource(SequenceSourceOptions options)
    : model_(options.model),
      plan_(options.plan),
      table_(options.table),
      matcher_(options.model),
      state_plan_(std::move(options.states)),
      hold_until_waiting_(options.hold_until_waiting),
      hold_until_backlog_(options.hold_until_backlog),
      is_holding_(hold_until_waiting_ > 0) {
  GrowStates();
}

void SequenceSource::GrowStates() {
  if (state_plan_ == nullptr || state_plan_->empty()) return;
  const size_t slots = table_.instance_count() * table_.slots_per_instance();
  while (states_.size() < slots) {
    states_.push_back(std::make_unique<core::SequenceStates>(state_plan_));
  }
}

void SequenceSource::AddInstance(size_t instance, uint64_t now_ns) {
  table_.AddInstance(instance, now_ns);
  GrowStates();
  Grow();
}

bool SequenceSource::IsHolding(size_t waiting_count) {
  if (is_holding_ && waiting_count >= hold_until_waiting_ &&
      table_.backlog_count() >= hold_until_backlog_) {
    is_holding_ = false;
  }
  return is_holding_;
}

core::RequestPtr SequenceSource::Dispatch(Sequence& sequence) {
  const uint32_t slot = sequence.slot();
  // Clears the states of the slot's previous sequence before any reader can see them.
  const bool is_fresh = !sequence.has_run();
  core::RequestPtr request = table_.Dispatch(sequence);
  plan_.AttachControls(*request);
  if (core::SequenceStates* const states = StatesOf(slot); states != nullptr) {
    if (is_fresh || (request->flags & core::kSequenceStart) != 0) states->Reset();
    states->AttachInputs(*request);
  }
  return request;
}

}  // namespace nereid::schedule
