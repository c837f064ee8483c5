// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_frame.h"

#include <utility>

#include "base/object_pool.h"

namespace nereid::schedule {
namespace {

// Reads the sequence that a response's parameters name instead of that of its request.
base::Status ReadSequence(const core::Response& response, EnsembleSequence& sequence) {
  bool is_given = false;
  uint32_t flags = 0;
  for (const core::Parameter& parameter : response.parameters()) {
    if (parameter.name == "sequence_id") {
      if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
        sequence.id = static_cast<uint64_t>(*number);
      } else if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
        sequence.id = *text;
      } else {
        return base::InvalidArgumentError(
            "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or "
            "TRITONSERVER_PARAMETER_STRING");
      }
      is_given = true;
      continue;
    }
    const bool is_start = parameter.name == "sequence_start";
    if (!is_start && parameter.name != "sequence_end") continue;
    const auto* value = std::get_if<bool>(&parameter.value);
    if (value == nullptr) {
      return base::InvalidArgumentError("expect parameter '" + std::string(parameter.name) +
                                        "' to be TRITONSERVER_PARAMETER_BOOL");
    }
    if (*value) flags |= is_start ? core::kSequenceStart : core::kSequenceEnd;
    is_given = true;
  }
  if (is_given) sequence.flags = flags;
  return base::OkStatus();
}

}  // namespace

EnsembleFrame& EnsembleFrame::Take(const EnsemblePlan& plan, const EnsembleNeeds& needs,
                                   uint32_t group) {
  EnsembleFrame& frame = *base::ObjectPool<EnsembleFrame>::Take();
  frame.plan_ = &plan;
  frame.needs_ = &needs;
  const size_t steps = plan.steps().size();
  if (frame.source_capacity_ < steps) {
    frame.sources_ = std::make_unique<EnsembleSource[]>(steps);
    frame.source_capacity_ = steps;
  }
  frame.source_count_ = steps;
  frame.values_.assign(plan.tensors().size(), {});
  frame.missing_.resize(steps);
  for (size_t i = 0; i < steps; ++i) {
    frame.missing_[i] = static_cast<uint32_t>(plan.steps()[i].input_tensors.size());
  }
  frame.missing_outputs_ = group == plan.output_group() ? needs.output_count : UINT32_MAX;
  frame.references_ = 1;
  return frame;
}

void EnsembleFrame::Unreference() {
  if (--references_ != 0) return;
  // Not within the pool: destroying a response may destroy its request, its model and the run.
  for (size_t i = 0; i < source_count_; ++i) sources_[i].response.reset();
  base::ObjectPool<EnsembleFrame>::Give(this);
}

void EnsembleFrame::Recycle() {
  source_count_ = 0;
  plan_ = nullptr;
  needs_ = nullptr;
  ready_.clear();
}

void EnsembleFrame::Set(uint32_t tensor, const EnsembleValue& value) {
  EnsembleValue& target = values_[tensor];
  if (target.is_set) return;
  target = value;
  target.is_set = true;
  const EnsembleTensor& described = plan_->tensors()[tensor];
  for (const uint32_t step : described.consumers) {
    if (--missing_[step] == 0 && needs_->steps[step] != 0) ready_.push_back(step);
  }
  if (described.output >= 0 && needs_->outputs[static_cast<size_t>(described.output)] != 0) {
    --missing_outputs_;
  }
}

base::Status EnsembleFrame::TakeResponse(uint32_t step, core::ResponsePtr response,
                                         const EnsembleSequence& sequence) {
  EnsembleSource& taken = sources_[step];
  taken.sequence = sequence;
  base::Status status = ReadSequence(*response, taken.sequence);
  for (const EnsembleBinding& binding : plan_->steps()[step].outputs) {
    EnsembleValue value{.batch_size = response->request().batch_size};
    for (size_t i = 0; i < response->output_count() && value.output == nullptr; ++i) {
      if (response->output(i).name == binding.name) value.output = &response->output(i);
    }
    Set(binding.tensor, value);
  }
  taken.readers = needs_->readers[step];
  taken.response = std::move(response);
  return status;
}

}  // namespace nereid::schedule
