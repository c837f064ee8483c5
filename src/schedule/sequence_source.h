// SPDX-License-Identifier: Apache-2.0
// What the two strategies of sequence batching share: taking the next request of a sequence, with
// the controls and states that its model wants.
#pragma once

#include <memory>
#include <vector>

#include "core/model.h"
#include "core/sequence_states.h"
#include "schedule/request_matcher.h"
#include "schedule/sequence_plan.h"
#include "schedule/sequence_table.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

// What a source of sequences' batches is made with.
struct SequenceSourceOptions {
  const core::Model& model;
  const SequencePlan& plan;
  SequenceTable& table;
  // Null or empty: the model keeps no states.
  std::shared_ptr<const core::StatePlan> states;
  // Nothing runs before so many requests wait in slots, and so many in the backlog, once: lets a
  // test line up what it needs.
  size_t hold_until_waiting = 0;
  size_t hold_until_backlog = 0;
};

// Confined to the lock of its scheduler. Everything in `options` outlives it.
class SequenceSource : public WorkSource {
 public:
  explicit SequenceSource(SequenceSourceOptions options);

  bool HasWaiting() const override { return table_.waiting_count() > 0; }
  bool is_instance_bound() const override { return table_.instance_count() > 1; }
  void AddInstance(size_t instance, uint64_t now_ns) override;
  void RetireInstance(size_t instance) override { table_.RetireInstance(instance); }
  bool IsReleased(size_t instance) const override { return table_.IsUnused(instance); }
  // Nothing is held back any more.
  void StopHolding() { is_holding_ = false; }

 protected:
  // Makes room for all instances that the table has.
  virtual void Grow() {}
  // Whether fewer requests wait than were asked for. Never again once there were enough.
  bool IsHolding(size_t waiting_count);
  // The next request of a sequence that is ready, complete for the backend.
  core::RequestPtr Dispatch(Sequence& sequence);
  // The states of the sequence in a slot; null where the model keeps none.
  core::SequenceStates* StatesOf(size_t slot) {
    return states_.empty() ? nullptr : states_[slot].get();
  }

  const core::Model& model_;
  const SequencePlan& plan_;
  SequenceTable& table_;
  const RequestMatcher matcher_;
  const std::shared_ptr<const core::StatePlan> state_plan_;

 private:
  void GrowStates();

  std::vector<std::unique_ptr<core::SequenceStates>> states_;  // by slot
  const size_t hold_until_waiting_;
  const size_t hold_until_backlog_;
  bool is_holding_;
};

}  // namespace nereid::schedule
