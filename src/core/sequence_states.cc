// SPDX-License-Identifier: Apache-2.0
#include "core/sequence_states.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "base/arithmetic.h"
#include "base/log.h"

namespace nereid::core {
namespace {

using base::InvalidArgumentError;
using base::Status;
using config::SequenceBatching;

// The bytes of one empty BYTES element: its length.
constexpr size_t kEmptyTextSize = 4;

// Returns the bytes of a tensor of zeros.
base::Result<size_t> ZeroByteSize(const std::string& name, tensor::DataType type,
                                  const tensor::Shape& shape) {
  std::optional<size_t> size = tensor::ByteSize(type, shape.dims());
  if (type == tensor::DataType::kBytes) {
    if (const auto count = tensor::ElementCount(shape.dims())) {
      size = base::CheckedMul<size_t>(static_cast<size_t>(*count), kEmptyTextSize);
    }
  }
  if (!size) {
    return InvalidArgumentError(
        fmt::format("state '{}' of type {} and shape {} has no size that "
                    "could be kept",
                    name, tensor::ConfigName(type), tensor::ToString(shape)));
  }
  return *size;
}

// Whether `bytes` consist of `count` strings, each after its length, and nothing else.
bool IsTextTensor(std::string_view bytes, int64_t count) {
  for (; count > 0; --count) {
    uint32_t length = 0;
    if (bytes.size() < kEmptyTextSize) return false;
    std::memcpy(&length, bytes.data(), kEmptyTextSize);
    bytes.remove_prefix(kEmptyTextSize);
    if (bytes.size() < length) return false;
    bytes.remove_prefix(length);
  }
  return bytes.empty();
}

// Gives `value` a buffer of its own. An empty tensor gets one too, because data must have an
// address.
Status Allocate(StateValue& value, size_t byte_size) {
  value.buffer = base::AcquireBuffer(std::max<size_t>(byte_size, 1));
  if (!value.buffer) {
    return base::UnavailableError(
        fmt::format("unable to allocate {} bytes for a state", byte_size));
  }
  value.byte_size = byte_size;
  return {};
}

// Returns a buffer of `byte_size` bytes that begins with those of `value`.
base::Result<base::BufferRef> CopyOf(const StateValue& value, size_t byte_size) {
  StateValue copy;
  NEREID_RETURN_IF_ERROR(Allocate(copy, byte_size));
  if (const size_t kept = std::min(byte_size, value.byte_size); kept > 0) {
    std::memcpy(copy.data(), value.data(), kept);
  }
  return std::move(copy.buffer);
}

// Compiles one entry of the configuration.
class Compiler {
 public:
  Compiler(const SequenceBatching::State& state, bool has_batch_dimension,
           const StatePlan::Files& files)
      : state_(state), files_(files) {
    spec_.input_name = state.input_name;
    spec_.output_name = state.output_name;
    spec_.shares_buffer = state.use_same_buffer_for_input_output;
    spec_.initial.type = state.data_type;
    if (has_batch_dimension) spec_.initial.shape.PushBack(1);
  }

  base::Result<StateSpec> Run() && {
    NEREID_RETURN_IF_ERROR(CheckOptions());
    if (state_.initial_state.empty()) {
      for (const int64_t dim : state_.dims) {
        spec_.initial.shape.PushBack(dim == config::kWildcardDim ? 1 : dim);
      }
      NEREID_RETURN_IF_ERROR(FillWithZeros());
    } else {
      NEREID_RETURN_IF_ERROR(TakeDims(state_.initial_state[0]));
      NEREID_RETURN_IF_ERROR(TakeData(state_.initial_state[0]));
    }
    return std::move(spec_);
  }

 private:
  Status CheckOptions() const {
    const std::string& name = state_.input_name;
    if (state_.use_growable_memory && !state_.use_same_buffer_for_input_output) {
      return InvalidArgumentError(
          fmt::format("In order to 'use_growable_memory', you must also enable "
                      "'use_single_buffer' for state input name '{}'.",
                      name));
    }
    if (state_.initial_state.size() > 1) {
      return InvalidArgumentError(
          fmt::format("initial_state field for state input '{}' must contain exactly one or zero "
                      "element. Found '{}' elements.",
                      name, state_.initial_state.size()));
    }
    if (state_.initial_state.empty()) return {};
    const SequenceBatching::InitialState& initial = state_.initial_state[0];
    if (initial.data_type != state_.data_type) {
      return InvalidArgumentError(
          fmt::format("The data type used for 'initial_state' field of "
                      "state '{}' does not match the state data type.",
                      name));
    }
    if (initial.name.empty()) {
      return InvalidArgumentError(fmt::format(
          "Field 'name' must be set when using initial_state for state input '{}'.", name));
    }
    if (initial.dims.size() != state_.dims.size()) {
      return InvalidArgumentError(fmt::format(
          "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions "
          "for state input '{}'. {} != {}",
          name, initial.dims.size(), state_.dims.size()));
    }
    return {};
  }

  Status TakeDims(const SequenceBatching::InitialState& initial) {
    for (size_t i = 0; i < initial.dims.size(); ++i) {
      if (initial.dims[i] == config::kWildcardDim) {
        return InvalidArgumentError(
            fmt::format("'initial_state' field for state input name '{}' contains variable "
                        "dimensions.",
                        state_.input_name));
      }
      if (state_.dims[i] != config::kWildcardDim && initial.dims[i] != state_.dims[i]) {
        return InvalidArgumentError(fmt::format(
            "'initial_state' dim for input name '{}' doesn't match 'state' dim description. {} != "
            "{}",
            state_.input_name, initial.dims[i], state_.dims[i]));
      }
      spec_.initial.shape.PushBack(initial.dims[i]);
    }
    return {};
  }

  Status TakeData(const SequenceBatching::InitialState& initial) {
    if (std::holds_alternative<SequenceBatching::ZeroData>(initial.state_data)) {
      return FillWithZeros();
    }
    if (const auto* file = std::get_if<SequenceBatching::DataFile>(&initial.state_data)) {
      return FillFromFile(file->path);
    }
    return InvalidArgumentError(fmt::format(
        "initial_state setting expects state '{}' to have state_data set", state_.input_name));
  }

  Status FillWithZeros() {
    NEREID_ASSIGN_OR_RETURN(const size_t size, ZeroByteSize(state_.input_name, spec_.initial.type,
                                                            spec_.initial.shape));
    NEREID_RETURN_IF_ERROR(Allocate(spec_.initial, size));
    std::memset(spec_.initial.data(), 0, size);
    return {};
  }

  Status FillFromFile(const std::string& path) {
    const auto found = files_.find(path);
    if (found == files_.end()) {
      return base::InternalError(fmt::format("initial state file '{}' was not read", path));
    }
    std::string_view bytes = found->second;
    if (spec_.initial.type == tensor::DataType::kBytes) {
      const auto count = tensor::ElementCount(spec_.initial.shape.dims());
      if (!count || !IsTextTensor(bytes, *count)) {
        return InvalidArgumentError(fmt::format(
            "initial_state setting expects {} elements of type TYPE_STRING for state '{}', but the "
            "data provided from {} is not that",
            count.value_or(-1), state_.input_name, path));
      }
    } else {
      NEREID_ASSIGN_OR_RETURN(const size_t size, ZeroByteSize(state_.input_name, spec_.initial.type,
                                                              spec_.initial.shape));
      if (size > bytes.size()) {
        return InvalidArgumentError(fmt::format(
            "initial_state setting expects {} bytes, but the data provided from {} only has {} "
            "bytes.",
            size, path, bytes.size()));
      }
      bytes = bytes.substr(0, size);
    }
    NEREID_RETURN_IF_ERROR(Allocate(spec_.initial, bytes.size()));
    if (!bytes.empty()) std::memcpy(spec_.initial.data(), bytes.data(), bytes.size());
    return {};
  }

  const SequenceBatching::State& state_;
  const StatePlan::Files& files_;
  StateSpec spec_;
};

}  // namespace

base::Result<std::shared_ptr<const StatePlan>> StatePlan::Compile(
    const config::SequenceBatching& config, int64_t max_batch_size, const Files& files) {
  auto plan = std::make_shared<StatePlan>();
  for (const SequenceBatching::State& state : config.state) {
    NEREID_ASSIGN_OR_RETURN(StateSpec spec, Compiler(state, max_batch_size > 0, files).Run());
    const auto has_name = [&](const StateSpec& other) {
      return other.input_name == spec.input_name || other.output_name == spec.output_name;
    };
    if (std::ranges::any_of(plan->states_, has_name)) {
      if (!state.initial_state.empty()) {
        return InvalidArgumentError(
            fmt::format("State input name '{}' specified more than once.", state.input_name));
      }
      NEREID_LOG(kWarning,
                 "the state of input '{}' and output '{}' repeats a name of another one and is "
                 "ignored",
                 state.input_name, state.output_name);
      continue;
    }
    plan->states_.push_back(std::move(spec));
  }
  return std::shared_ptr<const StatePlan>(std::move(plan));
}

void SequenceState::Begin(tensor::DataType type, std::span<const int64_t> shape) {
  next_.type = type;
  next_.shape.Assign(shape);
  next_.buffer.Reset();
  next_.byte_size = 0;
  has_next_ = true;
  has_buffer_ = false;
}

base::Result<std::byte*> SequenceState::Buffer(size_t byte_size) {
  if (!has_next_) {
    return base::InvalidArgumentError("state '" + spec_.output_name +
                                      "' was updated; a further value needs a new state");
  }
  if (has_buffer_ && next_.byte_size == byte_size) return next_.data();
  if (!spec_.shares_buffer) {
    NEREID_RETURN_IF_ERROR(Allocate(next_, byte_size));
  } else {
    // All sequences share the initial value, so this sequence now gets its own copy.
    if (current_.data() == spec_.initial.data()) {
      NEREID_ASSIGN_OR_RETURN(current_.buffer, CopyOf(current_, current_.byte_size));
    }
    const StateValue& old = has_buffer_ ? next_ : current_;
    base::BufferRef shared = old.buffer;
    if (old.byte_size != byte_size) {
      NEREID_ASSIGN_OR_RETURN(shared, CopyOf(old, byte_size));
    }
    next_.buffer = std::move(shared);
    next_.byte_size = byte_size;
  }
  has_buffer_ = true;
  return next_.data();
}

base::Status SequenceState::Update() {
  if (!has_next_) {
    return base::InvalidArgumentError("state '" + spec_.output_name + "' was updated already");
  }
  if (!has_buffer_) {
    if (tensor::ElementCount(next_.shape.dims()) != 0) {
      return base::InvalidArgumentError("state '" + spec_.output_name +
                                        "' is updated without a buffer for its value");
    }
    NEREID_RETURN_IF_ERROR(Allocate(next_, 0));
  }
  current_ = std::move(next_);
  next_ = {};
  has_next_ = false;
  has_buffer_ = false;
  return {};
}

SequenceStates::SequenceStates(std::shared_ptr<const StatePlan> plan) : plan_(std::move(plan)) {
  states_.reserve(plan_->states().size());
  for (const StateSpec& spec : plan_->states()) states_.emplace_back(spec);
  Reset();
}

void SequenceStates::Reset() {
  for (SequenceState& state : states_) {
    state.current_ = state.spec_.initial;
    state.next_ = {};
    state.has_next_ = false;
    state.has_buffer_ = false;
    state.reading_.Reset();
  }
}

void SequenceStates::ResetLike(const SequenceStates& other) {
  Reset();
  for (size_t i = 0; i < states_.size(); ++i) {
    StateValue& value = states_[i].current_;
    const StateValue& like = other.states_[i].current_;
    const base::Result<size_t> size =
        ZeroByteSize(states_[i].spec_.input_name, like.type, like.shape);
    // If memory is exhausted, the initial value stays. At worst the batch fails, because its shape
    // differs.
    StateValue zeros{.type = like.type, .shape = like.shape, .buffer = {}, .byte_size = 0};
    if (!size.ok() || !Allocate(zeros, *size).ok()) continue;
    std::memset(zeros.data(), 0, *size);
    value = std::move(zeros);
  }
}

void SequenceStates::AttachInputs(Request& request) {
  for (SequenceState& state : states_) {
    const StateValue& value = state.current_;
    state.reading_ = value.buffer;
    request.AddServerInput(state.spec_.input_name, value.type, value.shape.dims(),
                           {.data = value.data(), .size = value.byte_size, .where = {}});
  }
  request.states = this;
}

base::Result<SequenceState*> SequenceStates::New(std::string_view output_name,
                                                 tensor::DataType type,
                                                 std::span<const int64_t> shape) {
  const auto found = std::ranges::find(states_, output_name, [](const SequenceState& state) {
    return std::string_view(state.spec_.output_name);
  });
  if (found == states_.end()) {
    return base::InvalidArgumentError("state '" + std::string(output_name) +
                                      "' is not a valid state name.");
  }
  found->Begin(type, shape);
  return &*found;
}

}  // namespace nereid::core
