// SPDX-License-Identifier: Apache-2.0
#include "config/model_config.h"

#include <algorithm>

namespace nereid::config {
namespace {

template <typename Tensors>
auto FindByName(const Tensors& tensors, std::string_view name) -> const
    typename Tensors::value_type* {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

const ModelInput* ModelConfig::FindInput(std::string_view input_name) const {
  return FindByName(input, input_name);
}

const ModelOutput* ModelConfig::FindOutput(std::string_view output_name) const {
  return FindByName(output, output_name);
}

bool ModelConfig::needs_resources() const {
  return std::ranges::any_of(instance_group, [](const InstanceGroup& group) {
    return group.rate_limiter && !group.rate_limiter->resources.empty();
  });
}

bool ModelConfig::IsServerInput(std::string_view input_name) const {
  const SequenceBatching* const batching = sequence_batching();
  if (batching == nullptr) return false;
  const auto is_in = [&](const auto& list, auto member) {
    return std::ranges::find(list, input_name, member) != list.end();
  };
  return is_in(batching->control_input, &SequenceBatching::ControlInput::name) ||
         is_in(batching->state, &SequenceBatching::State::input_name);
}

std::string_view KindName(InstanceGroup::Kind kind) {
  switch (kind) {
    case InstanceGroup::Kind::kAuto:
      return "KIND_AUTO";
    case InstanceGroup::Kind::kGpu:
      return "KIND_GPU";
    case InstanceGroup::Kind::kCpu:
      return "KIND_CPU";
    case InstanceGroup::Kind::kModel:
      return "KIND_MODEL";
  }
  return "";
}

std::string_view KindName(SequenceBatching::ControlKind kind) {
  switch (kind) {
    case SequenceBatching::ControlKind::kStart:
      return "CONTROL_SEQUENCE_START";
    case SequenceBatching::ControlKind::kReady:
      return "CONTROL_SEQUENCE_READY";
    case SequenceBatching::ControlKind::kEnd:
      return "CONTROL_SEQUENCE_END";
    case SequenceBatching::ControlKind::kCorrelationId:
      return "CONTROL_SEQUENCE_CORRID";
  }
  return "";
}

std::string_view KindName(BatchInput::Kind kind) {
  switch (kind) {
    case BatchInput::Kind::kElementCount:
      return "BATCH_ELEMENT_COUNT";
    case BatchInput::Kind::kAccumulatedElementCount:
      return "BATCH_ACCUMULATED_ELEMENT_COUNT";
    case BatchInput::Kind::kAccumulatedElementCountWithZero:
      return "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO";
    case BatchInput::Kind::kMaxElementCountAsShape:
      return "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE";
    case BatchInput::Kind::kItemShape:
      return "BATCH_ITEM_SHAPE";
    case BatchInput::Kind::kItemShapeFlatten:
      return "BATCH_ITEM_SHAPE_FLATTEN";
  }
  return "";
}

std::string_view KindName(BatchOutput::Kind kind) {
  switch (kind) {
    case BatchOutput::Kind::kScatterWithInputShape:
      return "BATCH_SCATTER_WITH_INPUT_SHAPE";
  }
  return "";
}

}  // namespace nereid::config
