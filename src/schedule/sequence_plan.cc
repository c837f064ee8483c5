// SPDX-License-Identifier: Apache-2.0
#include "schedule/sequence_plan.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "core/model.h"

namespace nereid::schedule {
namespace {

using Batching = config::SequenceBatching;
using Kind = Batching::ControlKind;

uint64_t ToNs(uint64_t us) {
  constexpr uint64_t kMaxUs = UINT64_C(9'000'000'000'000'000);  // fits nanoseconds
  return std::min(us, kMaxUs) * 1000;
}

size_t IdSize(tensor::DataType type) {
  return type == tensor::DataType::kUint64 || type == tensor::DataType::kInt64 ? 8 : 4;
}

}  // namespace

SequencePlan::SequencePlan(const config::ModelConfig& config)
    : max_batch_size_(static_cast<size_t>(std::max(config.max_batch_size, 1))),
      slots_per_instance_(max_batch_size_),
      control_shape_(config.max_batch_size != 0 ? 2 : 1, 1) {
  const Batching& batching = *config.sequence_batching();
  idle_ns_ = ToNs(batching.max_sequence_idle_microseconds);
  is_iterative_ = batching.iterative_sequence;
  CompileStrategy(batching);
  CompileControls(batching);
}

void SequencePlan::CompileStrategy(const Batching& batching) {
  if (const auto* direct = std::get_if<Batching::StrategyDirect>(&batching.strategy_choice)) {
    max_queue_delay_ns_ = ToNs(direct->max_queue_delay_microseconds);
    minimum_slot_utilization_ = direct->minimum_slot_utilization;
  }
  if (const auto* oldest = std::get_if<Batching::StrategyOldest>(&batching.strategy_choice)) {
    is_oldest_ = true;
    preserves_ordering_ = oldest->preserve_ordering;
    max_queue_delay_ns_ = ToNs(oldest->max_queue_delay_microseconds);
    if (oldest->max_candidate_sequences > 0) {
      slots_per_instance_ = static_cast<size_t>(oldest->max_candidate_sequences);
    }
    for (const int32_t size : oldest->preferred_batch_size) {
      if (size > 0) preferred_batch_sizes_.push_back(static_cast<size_t>(size));
    }
    std::ranges::sort(preferred_batch_sizes_);
  }
}

void SequencePlan::CompileControls(const Batching& batching) {
  // In the order START, END, READY, CORRID, whatever the order of the configuration.
  for (const Kind kind : {Kind::kStart, Kind::kEnd, Kind::kReady, Kind::kCorrelationId}) {
    for (const Batching::ControlInput& input : batching.control_input) {
      for (const Batching::Control& control : input.control) {
        if (control.kind != kind) continue;
        if (kind == Kind::kCorrelationId) {
          id_name_ = input.name;
          id_type_ = control.data_type;
        } else {
          AddBoolean(input.name, control);
        }
      }
    }
  }
}

void SequencePlan::AddBoolean(const std::string& name, const Batching::Control& control) {
  BooleanControl compiled{.name = name, .kind = control.kind};
  for (size_t i = 0; i < 2; ++i) {
    if (control.int32_false_true.size() == 2) {
      compiled.type = tensor::DataType::kInt32;
      compiled.size = sizeof(int32_t);
      std::memcpy(compiled.values[i].data(), &control.int32_false_true[i], sizeof(int32_t));
    } else if (control.fp32_false_true.size() == 2) {
      compiled.type = tensor::DataType::kFp32;
      compiled.size = sizeof(float);
      std::memcpy(compiled.values[i].data(), &control.fp32_false_true[i], sizeof(float));
    } else {
      compiled.type = tensor::DataType::kBool;
      compiled.size = 1;
      compiled.values[i][0] = std::byte{control.bool_false_true.at(i) ? uint8_t{1} : uint8_t{0}};
    }
  }
  booleans_.push_back(std::move(compiled));
}

base::Status SequencePlan::CheckCorrelationId(const core::Request& request) const {
  if (id_name_.empty()) return base::OkStatus();
  const bool is_text = std::holds_alternative<std::string_view>(request.correlation_id);
  if (is_text == (id_type_ == tensor::DataType::kBytes)) return base::OkStatus();
  return base::InvalidArgumentError(fmt::format(
      "{}sequence batching control '{}' data-type is '{}', but model '{}' expects '{}'",
      request.LogPrefix(), id_name_,
      tensor::ProtocolName(is_text ? tensor::DataType::kBytes : tensor::DataType::kUint64),
      request.model->name(), tensor::ProtocolName(id_type_)));
}

void SequencePlan::AttachBoolean(core::Request& request, const BooleanControl& control,
                                 bool value) const {
  request.AddServerInput(control.name, control.type, control_shape_,
                         {.data = control.values[value ? 1 : 0].data(), .size = control.size});
}

void SequencePlan::AttachCorrelationId(core::Request& request,
                                       const core::CorrelationId& id) const {
  if (id_name_.empty()) return;
  std::byte* data = nullptr;
  size_t size = 0;
  if (id_type_ == tensor::DataType::kBytes) {
    const auto* text = std::get_if<std::string_view>(&id);
    const auto length = static_cast<uint32_t>(text == nullptr ? 0 : text->size());
    size = sizeof length + length;
    data = request.arena().Allocate(size);
    if (data != nullptr) {
      std::memcpy(data, &length, sizeof length);
      if (length > 0) std::memcpy(data + sizeof length, text->data(), length);
    }
  } else {
    // Smaller types get the low bytes, as in Triton.
    const auto* number = std::get_if<uint64_t>(&id);
    const uint64_t value = number == nullptr ? 0 : *number;
    size = IdSize(id_type_);
    data = request.arena().Allocate(size);
    if (data != nullptr) std::memcpy(data, &value, size);
  }
  if (data == nullptr) size = 0;
  request.AddServerInput(id_name_, id_type_, control_shape_, {.data = data, .size = size});
}

void SequencePlan::AttachControls(core::Request& request) const {
  for (const BooleanControl& control : booleans_) {
    const bool value = control.kind == Kind::kReady ||
                       (control.kind == Kind::kStart && (request.flags & core::kSequenceStart)) ||
                       (control.kind == Kind::kEnd && (request.flags & core::kSequenceEnd));
    AttachBoolean(request, control, value);
  }
  AttachCorrelationId(request, request.correlation_id);
}

void SequencePlan::AttachNotReady(core::Request& padding) const {
  for (const BooleanControl& control : booleans_) AttachBoolean(padding, control, false);
  AttachCorrelationId(padding, uint64_t{0});
}

}  // namespace nereid::schedule
