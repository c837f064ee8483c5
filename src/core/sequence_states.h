// SPDX-License-Identifier: Apache-2.0
// Implicit state: tensors that the server keeps between the requests of a sequence. A model that is
// configured with `sequence_batching.state` gets them as inputs and gives new ones back.
//
//   StatePlan       what the configuration says, compiled once at load
//   SequenceStates  the tensors of one sequence; a sequence batcher has one for each slot
//   SequenceState   one of these, behind TRITONBACKEND_State*
//
// A new value is written beside the old one and takes its place with Update, so the input that a
// model reads never changes under it, and a request that fails before Update leaves its sequence as
// it was.
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

// A tensor that a state holds. Whoever has a copy keeps the bytes.
struct StateValue {
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape shape;  // with the batch dimension where the model has one
  base::BufferRef buffer;
  size_t byte_size = 0;

  std::byte* data() const { return buffer ? buffer.data() : nullptr; }
};

// One entry of `sequence_batching.state`.
struct StateSpec {
  std::string input_name;
  std::string output_name;
  StateValue initial;  // its bytes are shared by all sequences and never written
  // The new value is written over the old one (use_same_buffer_for_input_output).
  bool shares_buffer = false;
};

// Immutable.
class StatePlan {
 public:
  // Contents of the files in the model's initial_state folder, by the name the configuration uses.
  using Files = std::map<std::string, std::string, std::less<>>;

  // Variable dimensions begin with 1, and bytes without an initial_state with zero. Errors name the
  // state and what does not match. An entry that repeats a name is ignored, with a warning.
  static base::Result<std::shared_ptr<const StatePlan>> Compile(
      const config::SequenceBatching& config, int64_t max_batch_size, const Files& files);

  const std::vector<StateSpec>& states() const { return states_; }
  // The model keeps no states.
  bool empty() const { return states_.empty(); }

 private:
  std::vector<StateSpec> states_;
};

// Thread-compatible; used by the backend while it owns a request of the sequence.
class SequenceState {
 public:
  explicit SequenceState(const StateSpec& spec) : spec_(spec) {}

  // Room for `byte_size` bytes of the new value. The same room again for the same size. With a
  // shared buffer its bytes are those of the old value, as far as both reach.
  base::Result<std::byte*> Buffer(size_t byte_size);
  // Of the buffer asked for last, or of the current value where there was none.
  size_t buffer_byte_size() const { return has_next_ ? next_.byte_size : current_.byte_size; }
  // The new value becomes the sequence's. Without a buffer this is an error unless it has no bytes.
  base::Status Update();

 private:
  friend class SequenceStates;

  // A backend is about to make a value of this type and shape.
  void Begin(tensor::DataType type, std::span<const int64_t> shape);

  const StateSpec& spec_;  // of the owner's plan
  StateValue current_;
  StateValue next_;
  bool has_next_ = false;
  bool has_buffer_ = false;
  base::BufferRef reading_;  // what the inputs of the request being executed show
};

// Thread-compatible: the scheduler while no request of the sequence is with a backend, the backend
// while one is. It and its plan outlive the requests it is attached to, up to their release.
class SequenceStates {
 public:
  explicit SequenceStates(std::shared_ptr<const StatePlan> plan);
  SequenceStates(const SequenceStates&) = delete;
  SequenceStates& operator=(const SequenceStates&) = delete;

  // Back to the initial values: a sequence starts. Allocates nothing.
  void Reset();
  // Zeros in the shapes of `other`: the states for the padding request of an idle slot, so that it
  // can share a batch with real ones. For an object that no sequence uses.
  void ResetLike(const SequenceStates& other);

  // Adds the current values to `request` as inputs and makes these its states. Not twice for one
  // execution: a request that is executed again has lost its server inputs first.
  void AttachInputs(Request& request);

  // For the backend: the state that the model calls `output_name`, about to get a value of this
  // type and shape. What was begun before and not updated is dropped. Valid until the request is
  // released.
  base::Result<SequenceState*> New(std::string_view output_name, tensor::DataType type,
                                   std::span<const int64_t> shape);

  // The current value of the state at this position in the plan.
  const StateValue& value(size_t index) const { return states_[index].current_; }

 private:
  const std::shared_ptr<const StatePlan> plan_;
  std::vector<SequenceState> states_;  // as in the plan; its size is constant
};

}  // namespace nereid::core
