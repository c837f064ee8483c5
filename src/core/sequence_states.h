// SPDX-License-Identifier: Apache-2.0
// Implicit state: tensors that the server keeps between the requests of a sequence. A model with
// `sequence_batching.state` in its configuration receives them as inputs and returns new ones.
//
//   StatePlan       the configuration, compiled once at load
//   SequenceStates  the tensors of one sequence; a sequence batcher has one for each slot
//   SequenceState   one of these, behind TRITONBACKEND_State*
//
// A new value is written beside the old one and replaces it with Update, so the input that a model
// reads never changes during its execution, and a request that fails before Update leaves its
// sequence unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/status.h"
#include "config/model_config.h"
#include "core/request.h"
#include "memory/memory_type.h"
#include "tensor/shape.h"

namespace nereid::core {

// The tensor of a state. Copies share the bytes.
struct StateValue {
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape shape;  // with the batch dimension if the model has one
  base::BufferRef buffer;
  size_t byte_size = 0;

  std::byte* data() const { return buffer ? buffer.data() : nullptr; }
};

// One entry of `sequence_batching.state`.
struct StateSpec {
  std::string input_name;
  std::string output_name;
  StateValue initial;  // all sequences share its bytes, which are never written
  // The new value overwrites the old one (use_same_buffer_for_input_output).
  bool shares_buffer = false;
};

// The states of a model. Immutable.
class StatePlan {
 public:
  // The contents of the files in the model's initial_state folder, by the name in the
  // configuration.
  using Files = std::map<std::string, std::string, std::less<>>;

  // Variable dimensions are initially 1, and data without an initial_state is zero. Errors name the
  // state and the mismatch. An entry that repeats a name is ignored, with a warning.
  static base::Result<std::shared_ptr<const StatePlan>> Compile(
      const config::SequenceBatching& config, int64_t max_batch_size, const Files& files);

  const std::vector<StateSpec>& states() const { return states_; }
  // Whether the model has no states.
  bool empty() const { return states_.empty(); }

 private:
  std::vector<StateSpec> states_;
};

// One state of a sequence. Thread-compatible; the backend uses it while it owns a request of the
// sequence.
class SequenceState {
 public:
  explicit SequenceState(const StateSpec& spec) : spec_(spec) {}

  // Returns a buffer of `byte_size` bytes for the new value; the same buffer again for the same
  // size. If the state shares its buffer, the buffer begins with the bytes of the old value, as far
  // as it has them.
  base::Result<std::byte*> Buffer(size_t byte_size);
  // The size of the last requested buffer, or of the current value if there was none.
  size_t buffer_byte_size() const { return has_next_ ? next_.byte_size : current_.byte_size; }
  // Makes the new value the current one. Fails without a buffer, unless the value has no bytes.
  base::Status Update();

 private:
  friend class SequenceStates;

  // Begins a new value of this type and shape.
  void Begin(tensor::DataType type, std::span<const int64_t> shape);

  const StateSpec& spec_;  // of the owner's plan
  StateValue current_;
  StateValue next_;
  bool has_next_ = false;
  bool has_buffer_ = false;
  base::BufferRef reading_;  // holds the input data of the request in execution
};

// The states of one sequence. Thread-compatible: used by the backend while it has a request of the
// sequence, and otherwise by the scheduler. It and its plan outlive the requests it is attached to,
// up to their release.
class SequenceStates {
 public:
  explicit SequenceStates(std::shared_ptr<const StatePlan> plan);
  SequenceStates(const SequenceStates&) = delete;
  SequenceStates& operator=(const SequenceStates&) = delete;

  // Resets to the initial values when a sequence starts. Allocates nothing.
  void Reset();
  // Resets to zeros in the shapes of `other`, for the padding request of an idle slot, so that it
  // can share a batch with real ones. REQUIRES: no sequence uses this object.
  void ResetLike(const SequenceStates& other);

  // Adds the current values to `request` as inputs and makes these its states. REQUIRES: the
  // request has no server inputs from an earlier execution.
  void AttachInputs(Request& request);

  // Called by the backend: returns the state named `output_name`, ready for a value of this type
  // and shape. An earlier value without Update is dropped. Valid until the request is released.
  base::Result<SequenceState*> New(std::string_view output_name, tensor::DataType type,
                                   std::span<const int64_t> shape);

  // The current value of the state at this position in the plan.
  const StateValue& value(size_t index) const { return states_[index].current_; }

 private:
  const std::shared_ptr<const StatePlan> plan_;
  std::vector<SequenceState> states_;  // in the order of the plan; the size is constant
};

}  // namespace nereid::core
