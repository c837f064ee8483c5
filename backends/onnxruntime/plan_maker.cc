// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/plan_maker.h"

#include <algorithm>

namespace nereid::onnxruntime {

using backend::Error;
using backend::InputView;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;

namespace {

// Returns the elements of an input whose shape was validated.
int64_t CountOf(const InputView& input) {
  auto count = backend::ElementCount(input.shape);
  return count.ok() ? count.value() : 0;
}

}  // namespace

std::span<const int64_t> PlanMaker::MakeKey() {
  const std::vector<uint32_t>& members = gathering_.members();
  const std::vector<size_t>& fed = gathering_.fed();
  key_.clear();
  for (size_t o = 0; o < ports_.outputs.size(); ++o) {
    const bool wanted = ports_.outputs[o].is_state ||
                        std::any_of(members.begin(), members.end(),
                                    [&](uint32_t r) { return gathering_.wants(r, o); });
    key_.push_back(wanted ? 1 : 0);
  }
  for (size_t i = 0; i < fed.size(); ++i) {
    key_.push_back(static_cast<int64_t>(fed[i]));
    if (ports_.inputs[fed[i]].is_ragged) {
      int64_t elements = 0;
      for (const uint32_t r : members) {
        elements += CountOf(gathering_.view(i, r));
      }
      key_.push_back(elements);
      continue;
    }
    const std::span<const int64_t> shape = gathering_.view(i, members[0]).shape;
    key_.push_back(static_cast<int64_t>(shape.size()));
    const size_t batch_dims = gathering_.max_batch_size() > 0 ? 1 : 0;
    if (batch_dims > 0) {
      key_.push_back(gathering_.total_batch_size());
    }
    key_.insert(key_.end(), shape.begin() + static_cast<std::ptrdiff_t>(batch_dims), shape.end());
  }
  for (const backend::BatchInputTensor& input : gathering_.batch_inputs()) {
    key_.insert(key_.end(), input.shape().begin(), input.shape().end());
  }
  return key_;
}

Result<PlannedInput> PlanMaker::PlanInput(size_t i) const {
  const Port& port = ports_.inputs[gathering_.fed()[i]];
  const std::span<const int64_t> shape = gathering_.view(i, gathering_.members()[0]).shape;
  PlannedInput input{
      .port = gathering_.fed()[i], .shape = {shape.begin(), shape.end()}, .kept = {}};
  if (port.is_ragged) {
    input.shape.assign(1, 0);
    for (const uint32_t r : gathering_.members()) {
      input.shape[0] += CountOf(gathering_.view(i, r));
    }
  } else if (gathering_.max_batch_size() > 0) {
    input.shape[0] = gathering_.total_batch_size();
  }
  if (port.info.dims.empty()) {
    // A scalar arrives as [1], because a configuration cannot have no dimensions.
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(input.shape));
    if (elements != 1) {
      return Error::InvalidArgument(StrCat("inference input '", port.info.name,
                                           "' is a scalar in the model, got shape ",
                                           ShapeToString(input.shape)));
    }
    input.shape.clear();
  }
  if (!port.is_string()) {
    NEREID_KIT_ASSIGN(input.byte_size, backend::TensorByteSize(port.datatype, input.shape));
  }
  return input;
}

Result<std::unique_ptr<Plan>> PlanMaker::NewPlan() const {
  auto plan = std::make_unique<Plan>();
  plan->key = key_;
  for (size_t i = 0; i < gathering_.fed().size(); ++i) {
    NEREID_KIT_ASSIGN(PlannedInput input, PlanInput(i));
    plan->input_names.push_back(ports_.inputs[input.port].info.name.c_str());
    plan->inputs.push_back(std::move(input));
  }
  for (size_t b = 0; b < ports_.batch_inputs.size(); ++b) {
    for (const size_t port : ports_.batch_inputs[b].inputs) {
      const std::span<const int64_t> shape = gathering_.batch_inputs()[b].shape();
      plan->input_names.push_back(ports_.inputs[port].info.name.c_str());
      plan->inputs.push_back({.port = port,
                              .batch_input = static_cast<int>(b),
                              .shape = {shape.begin(), shape.end()},
                              .kept = {}});
    }
  }
  for (size_t o = 0; o < ports_.outputs.size(); ++o) {
    if (key_[o] != 0) {
      AddOutput(o, *plan);
    }
  }
  return plan;
}

// ONNX Runtime is not asked for an input that is also an output: it leaves memory that was prepared
// for one as it is, and on a GPU it reads the input's memory there before the input has arrived.
void PlanMaker::AddOutput(size_t o, Plan& plan) const {
  const std::string& name = ports_.outputs[o].info.name;
  PlannedOutput output{.port = o, .shape = {}, .kept = {}};
  const auto same = std::find_if(
      plan.inputs.begin(), plan.inputs.end(),
      [&](const PlannedInput& input) { return ports_.inputs[input.port].info.name == name; });
  if (same == plan.inputs.end()) {
    plan.output_names.push_back(name.c_str());
  } else {
    output.passed_on = static_cast<int>(same - plan.inputs.begin());
    same->is_passed_on = true;
  }
  plan.outputs.push_back(std::move(output));
}

}  // namespace nereid::onnxruntime
