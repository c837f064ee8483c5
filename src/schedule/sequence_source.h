// SPDX-License-Identifier: Apache-2.0
// The common part of the two strategies of sequence batching: takes the next request of a sequence,
// with the controls and states that its model needs.
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

// The arguments of a source of sequences' batches.
struct SequenceSourceOptions {
  const core::Model& model;
  const SequencePlan& plan;
  SequenceTable& table;
  // Null or empty: the model keeps no states.
  std::shared_ptr<const core::StatePlan> states;
  // Nothing runs before so many requests have waited in slots, and so many in the backlog, at the
  // same time, once. Lets a test prepare a queue.
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
  // Ends the effect of hold_until_waiting.
  void StopHolding() { is_holding_ = false; }

 protected:
  // Makes room for all instances that the table has.
  virtual void Grow() {}
  // Returns whether fewer requests wait than hold_until_waiting says. Never again once there were
  // enough.
  bool IsHolding(size_t waiting_count);
  // Returns the next request of a ready sequence, complete for the backend.
  core::RequestPtr Dispatch(Sequence& sequence);
  // Returns the states of the sequence in a slot; null if the model keeps none.
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
