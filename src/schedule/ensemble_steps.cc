// SPDX-License-Identifier: Apache-2.0
// The part of a run that starts steps when their inputs are set, and takes their responses.
#include <utility>

#include "base/object_pool.h"
#include "schedule/ensemble_run.h"
#include "schedule/ensemble_tensors.h"

namespace nereid::schedule {

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
  shared_->runs->Add(*this, *request_);  // StartStep sees a cancellation that came earlier
  ChooseNeeds();
  // The first step starts now, because without limits nothing waits for a place.
  if (!is_limited()) begins_ns_ = request_->times.queue_start_ns;
  const EnsemblePlan& plan = shared_->plan;
  EnsembleFrame& frame = EnsembleFrame::Take(plan, *needs_, 0);
  for (const core::RequestInput& input : request_->inputs) {
    frame.Set(plan.input_tensors()[input.model_index],
              {.input = &input, .batch_size = request_->batch_size});
  }
  // An optional input that was omitted counts as given without data.
  for (const uint32_t tensor : plan.input_tensors()) {
    if (!frame.value(tensor).is_set) frame.Set(tensor, {});
  }
  StartReady(frame);
  if (frame.has_all_outputs() && status_.ok()) {
    // Outputs that are also inputs of the ensemble.
    if (const base::Status status = MakeResponse(frame); !status.ok()) Fail(status);
  }
  frame.Unreference();
  FinishIfIdle();
}

base::Status EnsembleRun::TakeResponse(StepCall& call, core::ResponsePtr response) {
  const EnsembleStep& step = shared_->plan.steps()[call.step];
  EnsembleFrame* frame = call.frame;
  if (step.is_decoupled) {
    frame = &EnsembleFrame::Take(shared_->plan, *needs_, step.output_group);
  } else if (call.has_responded) {
    return base::InternalError("model '" + step.model_name +
                               "' sent more than one response to a request, but is not decoupled");
  } else {
    frame->Reference();
  }
  call.has_responded = true;
  base::Status status = frame->TakeResponse(call.step, std::move(response), call.sequence);
  if (status.ok()) StartReady(*frame);
  if (status.ok() && status_.ok() && frame->has_all_outputs()) status = MakeResponse(*frame);
  frame->Unreference();
  return status;
}

base::Status EnsembleRun::MakeResponse(EnsembleFrame& frame) {
  NEREID_ASSIGN_OR_RETURN(pending_, MakeEnsembleResponse(*request_, shared_->model, frame));
  return base::OkStatus();
}

void EnsembleRun::StartReady(EnsembleFrame& frame) {
  for (const uint32_t step : frame.ready()) {
    if (!status_.ok()) break;
    StartStep(frame, step);
  }
  frame.ready().clear();
}

void EnsembleRun::StartStep(EnsembleFrame& frame, uint32_t index) {
  if (request_->is_cancelled()) {
    return Fail(base::CancelledError(request_->LogPrefix() + "Request cancelled"));
  }
  const EnsembleStep& step = shared_->plan.steps()[index];
  base::Result<core::ModelHandle> model =
      shared_->submitter.PinModel(step.model_id, step.model_version);
  if (!model.ok()) return Fail(model.status());
  StepCall& call = StepCall::Take(*this, frame, index);
  core::RequestPtr request = MakeRequest(call, std::move(*model));
  call.cancellation.Open(*request);
  AddCall(call);
  if (is_limited()) {
    // As soon as it waits, another thread may deliver its place.
    call.held = std::move(request);
    room_.NoteHeld(index);
    if (!shared_->limiters[index]->Acquire(call)) {
      if (request_->deadline_ns == 0) return;
      return shared_->deadlines->Add(*this, request_->deadline_ns);
    }
    room_.NotePlaced(index);
    call.has_place = true;
    request = std::move(call.held);
  }
  Submit(std::move(request));
}

void EnsembleRun::Submit(core::RequestPtr request) {
  // A place that a request waited for comes on any thread, and a round is confined to its own.
  request->round = IsHome() ? request_->round : nullptr;
  shared_->submitter.Submit(std::move(request));
}

core::RequestPtr EnsembleRun::MakeRequest(StepCall& call, core::ModelHandle model) {
  const EnsembleStep& step = shared_->plan.steps()[call.step];
  core::RequestPtr request = core::Request::Create(call);
  request->model = std::move(model);
  request->id = request_->id;
  request->parameters = request_->parameters;
  request->priority = request_->priority;
  request->caller = request_->caller;
  request->timeout_us = request_->timeout_us;
  request->deadline_ns = request_->deadline_ns;
  request->times.request_start_ns = request->times.queue_start_ns = std::exchange(begins_ns_, 0);
  call.sequence = SequenceOfStep(*request_, step, *call.frame);
  // The response that a text was read from may be destroyed before this request.
  if (auto* const text = std::get_if<std::string_view>(&call.sequence.id);
      text != nullptr && !step.producers.empty()) {
    *text = request->arena().Copy(*text);
  }
  request->correlation_id = call.sequence.id;
  request->flags = call.sequence.flags;
  FillStepInputs(*request, step, *call.frame);
  if (request_->trace != nullptr) [[unlikely]] {
    request->trace = observe::Trace::Share(request_->trace->SpawnChild());
    request->trace->Describe(request->model->name(), request->model->version(), request->id);
  }
  if (step.outputs.size() < request->model->outputs().size()) {
    for (const EnsembleBinding& output : step.outputs) {
      request->outputs.push_back({.name = output.name});
    }
  }
  return request;
}

void EnsembleRun::AddCall(StepCall& call) {
  calls_.PushFront(call);
  ++in_flight_;
  ++unreleased_;
  times_.NoteStarted();
}

}  // namespace nereid::schedule
