// SPDX-License-Identifier: Apache-2.0
// The compiled `sequence_batching` of a model's configuration: the strategy, and the control
// tensors that tell the model the position of each request in its sequence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"
#include "core/request.h"
#include "tensor/shape.h"

namespace nereid::schedule {

// Immutable. The data of control tensors is built once and shared by all requests, so a plan
// outlives the requests it was attached to.
class SequencePlan {
 public:
  // `config` has been validated and has sequence_batching.
  explicit SequencePlan(const config::ModelConfig& config);

  // -- The strategy. --
  bool is_oldest() const { return is_oldest_; }
  // The number of sequences that one instance holds at the same time.
  size_t slots_per_instance() const { return slots_per_instance_; }
  size_t max_batch_size() const { return max_batch_size_; }
  uint64_t max_queue_delay_ns() const { return max_queue_delay_ns_; }
  // Direct: the share of slots that makes a batch worth running before its delay is over.
  float minimum_slot_utilization() const { return minimum_slot_utilization_; }
  // Oldest: ascending; empty means the largest batch.
  const std::vector<size_t>& preferred_batch_sizes() const { return preferred_batch_sizes_; }
  bool preserves_ordering() const { return preserves_ordering_; }
  // A sequence without any request for this long is ended.
  uint64_t idle_ns() const { return idle_ns_; }
  bool is_iterative() const { return is_iterative_; }

  // -- Controls. -- Fails if the model needs an id of another kind than the request's.
  base::Status CheckCorrelationId(const core::Request& request) const;
  // Adds the control tensors for the request's flags and id.
  void AttachControls(core::Request& request) const;
  // Adds the control tensors of padding: START, END and READY false, the id zero.
  void AttachNotReady(core::Request& padding) const;

 private:
  // A control that has one of two values.
  struct BooleanControl {
    std::string name;
    config::SequenceBatching::ControlKind kind{};
    tensor::DataType type{};
    size_t size = 0;
    std::array<std::array<std::byte, 4>, 2> values{};  // false, true
  };

  void CompileStrategy(const config::SequenceBatching& batching);
  void CompileControls(const config::SequenceBatching& batching);
  void AddBoolean(const std::string& name, const config::SequenceBatching::Control& control);
  void AttachBoolean(core::Request& request, const BooleanControl& control, bool value) const;
  void AttachCorrelationId(core::Request& request, const core::CorrelationId& id) const;

  bool is_oldest_ = false;
  bool preserves_ordering_ = false;
  bool is_iterative_ = false;
  size_t max_batch_size_ = 1;
  size_t slots_per_instance_ = 1;
  uint64_t max_queue_delay_ns_ = 0;
  uint64_t idle_ns_ = 0;
  float minimum_slot_utilization_ = 0;
  std::vector<size_t> preferred_batch_sizes_;
  std::vector<int64_t> control_shape_;
  std::vector<BooleanControl> booleans_;  // START, END, READY, if configured
  std::string id_name_;                   // empty: the model does not need the id
  tensor::DataType id_type_{};
};

}  // namespace nereid::schedule
