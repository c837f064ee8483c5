// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/execution.h"

#include <algorithm>
#include <limits>

#include "backend_kit/shape.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Execution>> Execution::Create(ExecutionParts parts,
                                                     std::vector<Profile> profiles) {
  std::unique_ptr<Execution> execution(new Execution(std::move(parts)));
  OnDevice scope(execution->driver(), execution->parts_.device.id);
  NEREID_KIT_TRY(scope.TakeError());
  for (const TensorInfo& info : execution->parts_.engine->tensors()) {
    execution->tensors_.emplace_back(execution->parts_.device, info);
  }
  NEREID_KIT_TRY(execution->MakeStreams());
  NEREID_KIT_TRY(execution->MakeContexts(std::move(profiles)));
  for (TensorMemory& tensor : execution->tensors_) {
    NEREID_KIT_TRY(tensor.Allocate(execution->parts_.settings, execution->stream_->handle(),
                                   execution->parts_.name));
  }
  for (ProfileContext& context : execution->contexts_) {
    NEREID_KIT_TRY(execution->SetAddresses(context));
    if (execution->parts_.settings.uses_graphs) {
      execution->RecordAll(context);
    }
  }
  return execution;
}

Error Execution::MakeStreams() {
  const Settings& settings = parts_.settings;
  NEREID_KIT_ASSIGN(stream_, Stream::Create(parts_.device, settings.priority));
  if (settings.has_output_stream) {
    NEREID_KIT_ASSIGN(output_stream_, Stream::Create(parts_.device, settings.priority));
  }
  const bool is_busy = settings.is_busy_waiting;
  NEREID_KIT_ASSIGN(inputs_ready_, Event::Create(parts_.device, is_busy));
  NEREID_KIT_ASSIGN(computed_, Event::Create(parts_.device, is_busy));
  NEREID_KIT_ASSIGN(done_, Event::Create(parts_.device, is_busy));
  return {};
}

Error Execution::MakeContexts(std::vector<Profile> profiles) {
  const ProfileContext::Owner owner{
      .device = parts_.device, .engine = *parts_.engine, .name = parts_.name};
  for (Profile& profile : profiles) {
    NEREID_KIT_ASSIGN(ProfileContext context,
                      ProfileContext::Create(owner, std::move(profile), stream_->handle()));
    NEREID_KIT_TRY(MeasureInputs(context));
    NEREID_KIT_TRY(MeasureOutputs(context));
    contexts_.push_back(std::move(context));
  }
  return {};
}

Error Execution::MeasureInputs(ProfileContext& context) {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const TensorInfo& tensor = info(t);
    if (!tensor.is_input) {
      continue;
    }
    const ProfileRange& range = context.profile().range(t);
    auto size = backend::TensorByteSize(tensor.datatype, range.max.span());
    if (!size.ok()) {
      size.TakeError().Ignore();
      return Error::Internal(
          StrCat("unable to calculate size for input '", tensor.name, "' for ", parts_.name));
    }
    tensors_[t].Reserve(size.value());
    NEREID_KIT_TRY(context.SetShape(t, range.max));
    if (!tensor.is_shape) {
      continue;
    }
    // The largest values give the largest outputs.
    NEREID_KIT_TRY(tensors_[t].AllocateValues(range.max_values));
    if (!context.context().SetInputAddress(tensor.name.c_str(), tensors_[t].values())) {
      return Error::Internal(StrCat("trt failed to set the input shape binding for '", tensor.name,
                                    "' for ", parts_.name));
    }
  }
  return {};
}

Error Execution::MeasureOutputs(ProfileContext& context) {
  NEREID_KIT_TRY(context.InferShapes());
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const TensorInfo& tensor = info(t);
    if (tensor.is_input) {
      continue;
    }
    const Dims dims = context.context().ShapeOf(tensor.name.c_str());
    const auto sizes = dims.span();
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) {
      tensors_[t].SetDataDependent();
      continue;
    }
    const int64_t size = context.context().MaxOutputSize(tensor.name.c_str());
    if (size < 0) {
      return Error::Internal(
          StrCat("unable to allocate memory for output '", tensor.name, "' for ", parts_.name));
    }
    tensors_[t].Reserve(static_cast<uint64_t>(size));
  }
  return {};
}

Error Execution::SetAddresses(ProfileContext& context) {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (!tensors_[t].SetAddress(context.context())) {
      return Error::InvalidArgument(
          StrCat("'", info(t).name, "' does not map to an input or output tensor"));
    }
  }
  return {};
}

void Execution::RecordAll(ProfileContext& context) {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (info(t).is_shape || is_data_dependent(t)) {
      backend::LogWarning(StrCat("'", info(t).name, "' is a shape tensor or has a shape that is ",
                                 "computed, so CUDA graphs are not captured for ", parts_.name));
      return;
    }
  }
  for (const GraphSpec& spec : parts_.settings.graphs) {
    // Without a graph the shapes are executed as usual.
    if (const Error error = RecordOne(context, spec); !error.ok()) {
      backend::LogWarning(StrCat("unable to record CUDA graph for ", parts_.name, ", profile ",
                                 context.profile().name(), ", batch size ", spec.batch_size, ": ",
                                 error.message()));
    }
  }
}

Error Execution::RecordOne(ProfileContext& context, const GraphSpec& spec) {
  NEREID_KIT_ASSIGN(GraphShapes shapes,
                    GraphShapes::FromSpec(spec, parts_.engine->tensors(), parts_.ports,
                                          parts_.binding, context.profile()));
  NEREID_KIT_TRY(context.Record(std::move(shapes), stream_->handle()));
  backend::Log(TRITONSERVER_LOG_VERBOSE,
               StrCat("captured CUDA graph for ", parts_.name, ", batch size ", spec.batch_size));
  return {};
}

Error Execution::Begin(std::span<const InputCall> inputs) {
  inputs_ = inputs;
  context_ = nullptr;
  recorded_ = nullptr;
  Error first_error;
  uint64_t shortest = std::numeric_limits<uint64_t>::max();
  for (ProfileContext& context : contexts_) {
    if (Error error = context.profile().Check(inputs, parts_.name); !error.ok()) {
      first_error = first_error.ok() ? std::move(error) : std::move(first_error);
    } else if (const uint64_t distance = context.profile().Distance(inputs);
               context_ == nullptr || distance < shortest) {
      context_ = &context;
      shortest = distance;
    }
  }
  if (context_ == nullptr) {
    return first_error;
  }
  for (size_t t = 0; t < tensors_.size(); ++t) {
    tensors_[t].Begin();
    if (info(t).is_input && info(t).is_shape) {
      tensors_[t].Store(inputs[t].values);
    }
  }
  return {};
}

Error Execution::Run() {
  for (TensorMemory& tensor : tensors_) {
    NEREID_KIT_TRY(tensor.Flush(stream_->handle()));
  }
  recorded_ = context_->FindGraph(inputs_);
  const DriverFunctions& f = driver().functions();
  NEREID_KIT_TRY(
      driver().Check(f.record_event(inputs_ready_->handle(), stream_->handle()), "cuEventRecord"));
  NEREID_KIT_TRY(recorded_ != nullptr ? recorded_->graph->Launch(stream_->handle())
                                      : context_->Enqueue(inputs_, stream_->handle()));
  NEREID_KIT_TRY(
      driver().Check(f.record_event(computed_->handle(), stream_->handle()), "cuEventRecord"));
  if (output_stream_ == nullptr) {
    return {};
  }
  return driver().Check(f.stream_waits(output_stream_->handle(), computed_->handle(), 0),
                        "cuStreamWaitEvent");
}

Dims Execution::ShapeOf(size_t tensor) const {
  if (const GrowingOutput* const growing = tensors_[tensor].growing(); growing != nullptr) {
    return growing->dims();
  }
  return recorded_ != nullptr ? recorded_->outputs[tensor]
                              : context_->context().ShapeOf(info(tensor).name.c_str());
}

Error Execution::Wait() {
  const DriverFunctions& f = driver().functions();
  NEREID_KIT_TRY(driver().Check(f.record_event(done_->handle(), output_stream()), "cuEventRecord"));
  return driver().Check(f.wait_for_event(done_->handle()), "cuEventSynchronize");
}

std::array<backend::MemoryUse, 2> Execution::memory_uses() const {
  std::array<backend::MemoryUse, 2> uses = {
      {{.bytes = 0, .type = TRITONSERVER_MEMORY_GPU, .id = parts_.device.id},
       {.bytes = 0, .type = TRITONSERVER_MEMORY_CPU_PINNED}}};
  for (const TensorMemory& tensor : tensors_) {
    uses[0].bytes += tensor.device_bytes();
    uses[1].bytes += tensor.pinned_bytes();
  }
  return uses;
}

Execution::Times Execution::LastTimes() const {
  const auto elapsed = [&](const Event& from, const Event& to) -> uint64_t {
    float milliseconds = 0;
    const bool is_known =
        driver().functions().elapsed_time(&milliseconds, from.handle(), to.handle()) == 0;
    return is_known && milliseconds > 0
               ? static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6)
               : 0;
  };
  return {.compute_ns = elapsed(*inputs_ready_, *computed_),
          .output_ns = elapsed(*computed_, *done_)};
}

}  // namespace nereid::tensorrt
