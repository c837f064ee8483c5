// SPDX-License-Identifier: Apache-2.0
// What a run does with tensors: takes those of an answer, starts the steps that have theirs,
// answers. Texts and shape rules: core/src/ensemble_scheduler/ensemble_scheduler.cc of Triton.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/object_pool.h"
#include "core/reshape.h"
#include "schedule/ensemble_run.h"

namespace nereid::schedule {
namespace {

bool Fits(const tensor::Shape& config, const tensor::Shape& shape) {
  if (config.rank() != shape.rank()) return false;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (config[i] != shape[i] && config[i] != tensor::kWildcard && shape[i] != tensor::kWildcard) {
      return false;
    }
  }
  return true;
}

// The shape of a tensor for a model with, or without, a batch dimension. `batch_size` is that of
// the request it comes from, 0 without one. Where both have one, or neither, nothing changes.
tensor::Shape AcrossBatching(const tensor::Shape& config, bool is_batching, uint32_t batch_size,
                             const tensor::Shape& shape) {
  if (is_batching == (batch_size != 0)) return shape;
  const std::span<const int64_t> dims = shape.dims();
  if (is_batching) {
    // One element; a tensor that fits only with its first dimension is a batch already.
    if (!Fits(config, shape)) return shape;
    tensor::Shape batched{1};
    for (const int64_t dim : dims) batched.PushBack(dim);
    return batched;
  }
  if (Fits(config, shape) || batch_size != 1) return shape;
  return tensor::Shape(dims.subspan(1));
}

// The sequence that an answer's parameters name, instead of the one its request belonged to.
base::Status ReadSequence(const core::Response& response, EnsembleSource& source) {
  bool is_given = false;
  uint32_t flags = 0;
  for (const core::Parameter& parameter : response.parameters()) {
    if (parameter.name == "sequence_id") {
      if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
        source.correlation_id = static_cast<uint64_t>(*number);
      } else if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
        source.correlation_id = *text;
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
  if (is_given) source.flags = flags;
  return base::OkStatus();
}

void AddSequenceParameters(core::Response& response, const EnsembleSource& source) {
  core::Parameter id{.name = "sequence_id", .value = {}};
  if (const auto* number = std::get_if<uint64_t>(&source.correlation_id)) {
    id.value = static_cast<int64_t>(*number);
  } else {
    id.value = std::get<std::string_view>(source.correlation_id);
  }
  response.AddParameter(id);
  response.AddParameter(
      {.name = "sequence_start", .value = (source.flags & core::kSequenceStart) != 0});
  response.AddParameter(
      {.name = "sequence_end", .value = (source.flags & core::kSequenceEnd) != 0});
}

}  // namespace

void EnsembleRun::ChooseNeeds() {
  const EnsemblePlan& plan = shared_->plan;
  if (request_->outputs.empty() || request_->outputs.size() == plan.output_tensors().size()) {
    needs_ = &plan.all();
    return;
  }
  own_needs_.outputs.assign(plan.output_tensors().size(), 0);
  for (const core::RequestedOutput& output : request_->outputs) {
    own_needs_.outputs[output.model_index] = 1;
  }
  plan.Prune(own_needs_);
  needs_ = &own_needs_;
}

void EnsembleRun::Begin() {
  ChooseNeeds();
  // The first step starts now; nothing waits for a place yet.
  if (shared_->limiters.empty()) begins_ns_ = request_->times.queue_start_ns;
  const EnsemblePlan& plan = shared_->plan;
  EnsembleFrame& frame = EnsembleFrame::Take(plan, *needs_, 0);
  for (const core::RequestInput& input : request_->inputs) {
    SetValue(frame, plan.input_tensors()[input.model_index],
             {.is_set = true, .input = &input, .batch_size = request_->batch_size});
  }
  // What was left out, being optional, counts as given without data.
  for (const uint32_t tensor : plan.input_tensors()) {
    if (!frame.values[tensor].is_set) SetValue(frame, tensor, {.is_set = true});
  }
  StartReady(frame);
  if (frame.missing_outputs == 0 && status_.ok()) {
    // Outputs that are inputs.
    if (base::Status status = Answer(frame); !status.ok()) Fail(std::move(status));
  }
  frame.Unreference();
  FinishIfIdle();
}

void EnsembleRun::SetValue(EnsembleFrame& frame, uint32_t tensor, EnsembleValue value) {
  EnsembleValue& target = frame.values[tensor];
  if (target.is_set) return;
  target = value;
  const EnsembleTensor& described = shared_->plan.tensors()[tensor];
  for (const uint32_t step : described.consumers) {
    if (--frame.missing[step] == 0 && needs_->steps[step] != 0) ready_.push_back(step);
  }
  if (described.output >= 0 && needs_->outputs[static_cast<size_t>(described.output)] != 0) {
    --frame.missing_outputs;
  }
}

base::Status EnsembleRun::TakeAnswer(StepCall& call, core::ResponsePtr response) {
  const EnsembleStep& step = shared_->plan.steps()[call.step_];
  EnsembleFrame* frame = call.frame_;
  if (step.is_decoupled) {
    frame = &EnsembleFrame::Take(shared_->plan, *needs_, step.output_group);
  } else if (call.has_answered_) {
    return base::InternalError("model '" + step.model_name +
                               "' answered more than once but is not decoupled");
  } else {
    frame->Reference();
  }
  call.has_answered_ = true;
  EnsembleSource& source = frame->source(call.step_);
  source.correlation_id = call.correlation_id_;
  source.flags = call.flags_;
  base::Status status = ReadSequence(*response, source);
  for (const EnsembleBinding& binding : step.outputs) {
    EnsembleValue value{.is_set = true, .batch_size = response->request().batch_size};
    for (size_t i = 0; i < response->output_count() && value.output == nullptr; ++i) {
      if (response->output(i).name == binding.name) value.output = &response->output(i);
    }
    SetValue(*frame, binding.tensor, value);
  }
  source.readers.store(needs_->readers[call.step_], std::memory_order_relaxed);
  source.response = std::move(response);
  if (status.ok()) StartReady(*frame);
  ready_.clear();
  if (status.ok() && status_.ok() && frame->missing_outputs == 0) status = Answer(*frame);
  frame->Unreference();
  return status;
}

void EnsembleRun::StartReady(EnsembleFrame& frame) {
  for (size_t i = 0; i < ready_.size() && status_.ok(); ++i) StartStep(frame, ready_[i]);
  ready_.clear();
}

void EnsembleRun::StartStep(EnsembleFrame& frame, uint32_t index) {
  if (request_->is_cancelled()) {
    return Fail(base::CancelledError(request_->LogPrefix() + "Request cancelled"));
  }
  const EnsembleStep& step = shared_->plan.steps()[index];
  base::Result<core::ModelHandle> model =
      shared_->submitter.PinModel(step.model_id, step.model_version);
  if (!model.ok()) return Fail(model.status());
  StepCall& call = *base::ObjectPool<StepCall>::Take();
  call.run_ = this;
  Reference();
  call.frame_ = &frame;
  frame.Reference(2);
  call.step_ = index;
  core::RequestPtr request = core::Request::Create(call);
  request->model = std::move(*model);
  request->id = request_->id;
  request->parameters = request_->parameters;
  request->priority = request_->priority;
  request->timeout_us = request_->timeout_us;
  request->times.request_start_ns = request->times.queue_start_ns = std::exchange(begins_ns_, 0);
  if (IsHome()) request->round = request_->round;
  FillSequence(*request, step, frame);
  call.correlation_id_ = request->correlation_id;
  call.flags_ = request->flags;
  FillInputs(*request, step, frame);
  if (request_->trace != nullptr) [[unlikely]] {
    request->trace = observe::Trace::Share(request_->trace->SpawnChild());
    request->trace->Describe(request->model->name(), request->model->version(), request->id);
  }
  if (step.outputs.size() < request->model->outputs().size()) {
    for (const EnsembleBinding& output : step.outputs) {
      request->outputs.push_back({.name = output.name});
    }
  }
  call.in_flight_ = core::RequestRef(*request);
  call.next_ = calls_;
  if (calls_ != nullptr) calls_->previous_ = &call;
  calls_ = &call;
  ++in_flight_;
  unreleased_.fetch_add(1, std::memory_order_relaxed);
  unsettled_.fetch_add(1, std::memory_order_relaxed);
  if (!shared_->limiters.empty()) {
    // As soon as it waits, another thread may bring its place.
    call.held_ = std::move(request);
    ChangeHeld(1);
    if (!shared_->limiters[index]->Acquire(call)) return;
    ChangeHeld(-1);
    call.has_place_ = true;
    request = std::move(call.held_);
  }
  shared_->submitter.Submit(std::move(request));
}

void EnsembleRun::FillSequence(core::Request& request, const EnsembleStep& step,
                               EnsembleFrame& frame) {
  request.flags = request_->flags;
  request.correlation_id = request_->correlation_id;
  const EnsembleSource* from = nullptr;
  for (const uint32_t producer : step.producers) {
    const EnsembleSource& source = frame.source(producer);
    if (from == nullptr) {
      from = &source;
    } else if (from->correlation_id != source.correlation_id || from->flags != source.flags) {
      NEREID_LOG(kError,
                 "{}Different set of response parameters are set for '{}'. Those of model '{}' are "
                 "used.",
                 request_->LogPrefix(), step.model_name,
                 shared_->plan.steps()[step.producers.front()].model_name);
    }
  }
  if (from == nullptr) return;
  request.flags = from->flags;
  request.correlation_id = from->correlation_id;
  if (const auto* text = std::get_if<std::string_view>(&from->correlation_id)) {
    // The answer it was read from may go before this request.
    request.correlation_id = request.arena().Copy(*text);
  }
}

void EnsembleRun::FillInputs(core::Request& request, const EnsembleStep& step,
                             EnsembleFrame& frame) {
  const core::Model& model = *request.model;
  const bool is_batching = model.max_batch_size() > 0;
  for (const EnsembleBinding& binding : step.inputs) {
    const EnsembleValue& value = frame.values[binding.tensor];
    if (!value.has_data()) continue;
    core::RequestInput& input = request.AddInput(binding.name, value.type());
    if (is_batching == (value.batch_size != 0)) {
      input.shape = value.shape();
    } else if (const int index = model.FindInput(binding.name); index >= 0) {
      input.shape = AcrossBatching(model.inputs()[static_cast<size_t>(index)].dims, is_batching,
                                   value.batch_size, value.shape());
    } else {
      input.shape = value.shape();  // the engine refuses it
    }
    if (value.input != nullptr) {
      for (size_t i = 0; i < value.input->chunk_count(); ++i) input.Append(value.input->chunk(i));
    } else {
      const core::ResponseOutput& output = *value.output;
      input.Append({.data = output.data, .size = output.byte_size, .where = output.where});
    }
  }
}

base::Status EnsembleRun::Answer(EnsembleFrame& frame) {
  const EnsemblePlan& plan = shared_->plan;
  core::ResponsePtr response = core::Response::Create(*request_);
  const EnsembleSource* sequence = nullptr;
  for (const uint32_t output : shared_->model.outputs_by_name()) {
    if (needs_->outputs[output] == 0) continue;
    NEREID_RETURN_IF_ERROR(AddOutput(*response, frame, output));
    const EnsembleValue& value = frame.values[plan.output_tensors()[output]];
    const uint32_t producer = plan.tensors()[plan.output_tensors()[output]].producer;
    // Triton tells the sequence beside each output that has bytes; once is enough.
    if (producer == kNoStep || value.output == nullptr || value.output->byte_size == 0) continue;
    if (sequence == nullptr) sequence = &frame.source(producer);
  }
  if (sequence != nullptr) AddSequenceParameters(*response, *sequence);
  for (size_t output = 0; output < plan.output_tensors().size(); ++output) {
    const uint32_t producer = plan.tensors()[plan.output_tensors()[output]].producer;
    if (needs_->outputs[output] != 0 && producer != kNoStep) frame.source(producer).DropReader();
  }
  pending_ = std::move(response);
  return base::OkStatus();
}

base::Status EnsembleRun::AddOutput(core::Response& response, EnsembleFrame& frame,
                                    uint32_t output) {
  const EnsembleValue& value = frame.values[shared_->plan.output_tensors()[output]];
  const core::ModelTensor& described = shared_->model.outputs()[output];
  if (!value.has_data()) {
    NEREID_VLOG(1, "Composing models did not output tensor {}", described.name);
    return base::OkStatus();
  }
  const bool is_batching = request_->batch_size != 0;
  const tensor::Shape shape =
      AcrossBatching(described.model_dims, is_batching, value.batch_size, value.shape());
  core::ResponseOutput* const added =
      response.AddOutput(described.name, value.type(), shape.dims());
  if (added == nullptr) return base::UnavailableError("out of memory for outputs");
  if (described.has_reshape) {
    NEREID_RETURN_IF_ERROR(core::ReshapeForClient(described, is_batching, added->shape));
  }
  if (value.output != nullptr) return response.ShareBuffer(*added, *value.output);
  NEREID_RETURN_IF_ERROR(response.AllocateBuffer(*added, value.input->byte_size, {}, false));
  std::byte* to = added->data;
  for (size_t i = 0; i < value.input->chunk_count(); ++i) {
    const core::DataChunk& chunk = value.input->chunk(i);
    if (chunk.size > 0) std::memcpy(to, chunk.data, chunk.size);
    to += chunk.size;
  }
  return base::OkStatus();
}

}  // namespace nereid::schedule
