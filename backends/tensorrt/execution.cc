// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/execution.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend_kit/handles.h"
#include "backend_kit/shape.h"
#include "tensorrt_backend/shape_values.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr const char* kNotSpecified =
    "failed to specify the dimensions of all input tensors or values of all input shape tensors";

bool IsSame(const Dims& a, std::span<const int64_t> b) {
  const auto sizes = a.span();
  return std::equal(sizes.begin(), sizes.end(), b.begin(), b.end());
}

Dims ToDims(std::span<const int64_t> shape) {
  Dims dims;
  dims.count = static_cast<int32_t>(std::min<size_t>(shape.size(), Dims::kMaxCount));
  std::copy_n(shape.begin(), dims.count, dims.sizes.begin());
  return dims;
}

}  // namespace

Result<std::unique_ptr<Execution>> Execution::Create(ExecutionParts parts,
                                                     std::vector<Profile> profiles) {
  std::unique_ptr<Execution> execution(new Execution(std::move(parts)));
  OnDevice scope(execution->driver(), execution->parts_.device.id);
  NEREID_KIT_TRY(scope.TakeError());
  execution->tensors_.resize(execution->parts_.engine->tensors().size());
  NEREID_KIT_TRY(execution->MakeStreams());
  for (Profile& profile : profiles) {
    NEREID_KIT_TRY(execution->MakeWay(std::move(profile)));
  }
  NEREID_KIT_TRY(execution->AllocateAll());
  for (Way& way : execution->ways_) {
    NEREID_KIT_TRY(execution->SetAddresses(way));
    if (execution->parts_.settings.uses_graphs) {
      NEREID_KIT_TRY(execution->RecordAll(way));
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

Error Execution::MakeWay(Profile profile) {
  NEREID_KIT_ASSIGN(std::unique_ptr<Context> context, parts_.engine->NewContext());
  const int index = profile.index();
  // A new context has the first profile.
  if (index != 0 && !context->SetProfile(index, stream_->handle())) {
    return Error::InvalidArgument(StrCat("Can not set the specified optimization profile ",
                                         profile.name(), "[", index, "] for ", parts_.name,
                                         ". Expected optimization profile index range 0-",
                                         parts_.engine->profile_count() - 1));
  }
  NEREID_KIT_TRY(driver().Check(driver().functions().wait_for_stream(stream_->handle()),
                                "cuStreamSynchronize"));
  ways_.push_back({.profile = std::move(profile),
                   .context = std::move(context),
                   .current = std::vector<Dims>(tensors_.size()),
                   .graphs = {}});
  NEREID_KIT_TRY(MeasureInputs(ways_.back()));
  return MeasureOutputs(ways_.back());
}

Error Execution::MeasureInputs(Way& way) {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const TensorInfo& tensor = info(t);
    if (!tensor.is_input) {
      continue;
    }
    const ProfileRange& range = way.profile.range(t);
    auto size = backend::TensorByteSize(tensor.datatype, range.max.span());
    if (!size.ok()) {
      size.TakeError().Ignore();
      return Error::Internal(
          StrCat("unable to calculate size for input '", tensor.name, "' for ", parts_.name));
    }
    tensors_[t].capacity = std::max(tensors_[t].capacity, size.value());
    NEREID_KIT_TRY(SetShape(way, t, range.max));
    if (!tensor.is_shape) {
      continue;
    }
    // The largest values give the largest outputs.
    NEREID_KIT_ASSIGN(
        tensors_[t].host,
        HostMemory::Allocate(parts_.device, range.max_values.size() * sizeof(int64_t), true));
    StoreValues(range.max_values, tensor.datatype, tensors_[t].host->data());
    if (!way.context->SetInputAddress(tensor.name.c_str(), tensors_[t].host->data())) {
      return Error::Internal(StrCat("trt failed to set the input shape binding for '", tensor.name,
                                    "' for ", parts_.name));
    }
  }
  return {};
}

Error Execution::MeasureOutputs(Way& way) {
  if (way.context->InferShapes() != 0) {
    return Error::Internal(kNotSpecified);
  }
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const TensorInfo& tensor = info(t);
    if (tensor.is_input) {
      continue;
    }
    const Dims dims = way.context->ShapeOf(tensor.name.c_str());
    const auto sizes = dims.span();
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) {
      tensors_[t].growing = std::make_unique<GrowingOutput>(parts_.device);
      continue;
    }
    const int64_t size = way.context->MaxOutputSize(tensor.name.c_str());
    if (size < 0) {
      return Error::Internal(
          StrCat("unable to allocate memory for output '", tensor.name, "' for ", parts_.name));
    }
    tensors_[t].capacity = std::max(tensors_[t].capacity, static_cast<uint64_t>(size));
  }
  return {};
}

Error Execution::AllocateAll() {
  const Settings& settings = parts_.settings;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    Tensor& tensor = tensors_[t];
    const auto failed = [&](const Error& error) {
      return Error::Internal(StrCat("unable to allocate memory for ",
                                    info(t).is_input ? "input" : "output", " '", info(t).name,
                                    "' for ", parts_.name, ": ", error.message()));
    };
    if (!info(t).is_input) {
      tensor.pool = std::make_shared<HostPool>(parts_.device, settings.pins_outputs);
    }
    if (tensor.growing != nullptr) {
      continue;
    }
    if (info(t).is_shape) {
      auto host = HostMemory::Allocate(parts_.device, tensor.capacity, true);
      if (!host.ok()) {
        return failed(host.TakeError());
      }
      tensor.host = std::move(host).value();
      continue;
    }
    auto device = DeviceMemory::Allocate(parts_.device, tensor.capacity);
    if (!device.ok()) {
      return failed(device.TakeError());
    }
    tensor.device = std::move(device).value();
    if (info(t).is_input && settings.pins_inputs) {
      auto staging = HostMemory::Allocate(parts_.device, tensor.capacity, true);
      if (!staging.ok()) {
        return failed(staging.TakeError());
      }
      tensor.staging = std::move(staging).value();
    }
    if (tensor.capacity > 0) {
      // What a graph reads beyond the inputs of an execution is defined.
      NEREID_KIT_TRY(driver().Check(driver().functions().fill(tensor.device->address(), 0,
                                                              tensor.capacity, stream_->handle()),
                                    "cuMemsetD8Async"));
    }
  }
  return {};
}

Error Execution::SetAddresses(Way& way) {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const Tensor& tensor = tensors_[t];
    const char* const name = info(t).name.c_str();
    const bool is_set =
        tensor.growing != nullptr ? way.context->SetOutputAllocator(name, tensor.growing.get())
        : tensor.host != nullptr  ? way.context->SetAddress(name, tensor.host->data())
                                  : way.context->SetAddress(name, tensor.device->pointer());
    if (!is_set) {
      return Error::InvalidArgument(
          StrCat("'", name, "' does not map to an input or output tensor"));
    }
  }
  return {};
}

Error Execution::SetShape(Way& way, size_t tensor, const Dims& dims) {
  if (!info(tensor).has_variable_dims() || IsSame(way.current[tensor], dims.span())) {
    return {};
  }
  if (!way.context->SetInputShape(info(tensor).name.c_str(), dims)) {
    return Error::Internal(StrCat("trt failed to set binding dimension to ",
                                  backend::ShapeToString(dims.span()), " for input '",
                                  info(tensor).name, "' for ", parts_.name));
  }
  way.current[tensor] = dims;
  return {};
}

Error Execution::RecordAll(Way& way) {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (info(t).is_shape || tensors_[t].growing != nullptr) {
      backend::LogWarning(StrCat("'", info(t).name, "' is a shape tensor or has a shape that is ",
                                 "computed, so CUDA graphs are not captured for ", parts_.name));
      return {};
    }
  }
  for (const GraphSpec& spec : parts_.settings.graphs) {
    // Without a graph the shapes are executed as usual.
    if (const Error error = RecordOne(way, spec); !error.ok()) {
      backend::LogWarning(StrCat("unable to record CUDA graph for ", parts_.name, ", profile ",
                                 way.profile.name(), ", batch size ", spec.batch_size, ": ",
                                 error.message()));
    }
  }
  return {};
}

Error Execution::RecordOne(Way& way, const GraphSpec& spec) {
  Recorded recorded;
  NEREID_KIT_ASSIGN(recorded.shapes,
                    GraphShapes::FromSpec(spec, parts_.engine->tensors(), parts_.ports,
                                          parts_.binding, way.profile));
  std::vector<InputCall> calls(tensors_.size());
  for (size_t t = 0; t < tensors_.size(); ++t) {
    calls[t].shape = recorded.shapes.inputs[t].span();
  }
  NEREID_KIT_TRY(way.profile.Check(calls, parts_.name));
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (info(t).is_input) {
      NEREID_KIT_TRY(SetShape(way, t, recorded.shapes.inputs[t]));
    }
  }
  if (way.context->InferShapes() != 0) {
    return Error::Internal(kNotSpecified);
  }
  // The first execution with new shapes may allocate, which cannot be recorded.
  if (!way.context->Enqueue(stream_->handle())) {
    return Error::Internal("TensorRT could not enqueue the execution");
  }
  NEREID_KIT_TRY(driver().Check(driver().functions().wait_for_stream(stream_->handle()),
                                "cuStreamSynchronize"));
  NEREID_KIT_ASSIGN(recorded.graph, Graph::Record(parts_.device, stream_->handle(), [&] {
                      return way.context->Enqueue(stream_->handle());
                    }));
  for (size_t t = 0; t < tensors_.size(); ++t) {
    recorded.outputs.push_back(info(t).is_input ? Dims()
                                                : way.context->ShapeOf(info(t).name.c_str()));
  }
  way.graphs.push_back(std::move(recorded));
  backend::Log(TRITONSERVER_LOG_VERBOSE,
               StrCat("captured CUDA graph for ", parts_.name, ", batch size ", spec.batch_size));
  return {};
}

Error Execution::Begin(std::span<const InputCall> inputs) {
  inputs_ = inputs;
  way_ = nullptr;
  recorded_ = nullptr;
  Error first_error;
  uint64_t shortest = std::numeric_limits<uint64_t>::max();
  for (Way& way : ways_) {
    if (Error error = way.profile.Check(inputs, parts_.name); !error.ok()) {
      first_error = first_error.ok() ? std::move(error) : std::move(first_error);
    } else if (const uint64_t distance = way.profile.Distance(inputs);
               way_ == nullptr || distance < shortest) {
      way_ = &way;
      shortest = distance;
    }
  }
  if (way_ == nullptr) {
    return first_error;
  }
  for (size_t t = 0; t < tensors_.size(); ++t) {
    tensors_[t].staged_from = tensors_[t].staged_to = 0;
    if (info(t).is_input && info(t).is_shape) {
      StoreValues(inputs[t].values, info(t).datatype, tensors_[t].host->data());
    }
  }
  return {};
}

Error Execution::Put(size_t t, uint64_t offset, const backend::InputChunk& chunk) {
  Tensor& tensor = tensors_[t];
  if (chunk.size == 0) {
    return {};
  }
  if (offset > tensor.capacity || chunk.size > tensor.capacity - offset) {
    return Error::Internal(StrCat("input '", info(t).name, "' is larger than the largest shape"));
  }
  const DriverFunctions& f = driver().functions();
  const DeviceAddress to = tensor.device->address() + offset;
  if (chunk.type == TRITONSERVER_MEMORY_CPU && tensor.staging != nullptr) {
    if (tensor.staged_to != offset) {
      NEREID_KIT_TRY(Flush(t));
      tensor.staged_from = offset;
    }
    std::memcpy(tensor.staging->data() + offset, chunk.data, chunk.size);
    tensor.staged_to = offset + chunk.size;
    return {};
  }
  if (chunk.type == TRITONSERVER_MEMORY_GPU) {
    return driver().Check(
        f.copy(to, reinterpret_cast<DeviceAddress>(chunk.data), chunk.size, stream_->handle()),
        "cuMemcpyAsync");
  }
  return driver().Check(f.copy_to_device(to, chunk.data, chunk.size, stream_->handle()),
                        "cuMemcpyHtoDAsync");
}

Error Execution::Flush(size_t t) {
  Tensor& tensor = tensors_[t];
  const uint64_t size = tensor.staged_to - tensor.staged_from;
  if (tensor.staging == nullptr || size == 0) {
    return {};
  }
  const uint64_t from = tensor.staged_from;
  tensor.staged_from = tensor.staged_to;
  return driver().Check(
      driver().functions().copy_to_device(tensor.device->address() + from,
                                          tensor.staging->data() + from, size, stream_->handle()),
      "cuMemcpyHtoDAsync");
}

Error Execution::Run() {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    NEREID_KIT_TRY(Flush(t));
  }
  const auto find = [&](auto&& fits) {
    for (const Recorded& one : way_->graphs) {
      if (recorded_ == nullptr && fits(one.shapes)) {
        recorded_ = &one;
      }
    }
  };
  find([&](const GraphShapes& shapes) { return shapes.IsExactly(inputs_); });
  find([&](const GraphShapes& shapes) { return shapes.Holds(inputs_); });
  const DriverFunctions& f = driver().functions();
  NEREID_KIT_TRY(
      driver().Check(f.record_event(inputs_ready_->handle(), stream_->handle()), "cuEventRecord"));
  NEREID_KIT_TRY(recorded_ != nullptr ? recorded_->graph->Launch(stream_->handle()) : Enqueue());
  NEREID_KIT_TRY(
      driver().Check(f.record_event(computed_->handle(), stream_->handle()), "cuEventRecord"));
  if (output_stream_ == nullptr) {
    return {};
  }
  return driver().Check(f.stream_waits(output_stream_->handle(), computed_->handle(), 0),
                        "cuStreamWaitEvent");
}

Error Execution::Enqueue() {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (info(t).is_input && !info(t).is_shape) {
      NEREID_KIT_TRY(SetShape(*way_, t, ToDims(inputs_[t].shape)));
    }
  }
  if (way_->context->InferShapes() != 0) {
    return Error::Internal(kNotSpecified);
  }
  if (!way_->context->Enqueue(stream_->handle())) {
    return Error::Internal(StrCat("unable to enqueue for inference ", parts_.name));
  }
  return {};
}

Dims Execution::ShapeOf(size_t tensor) const {
  if (tensors_[tensor].growing != nullptr) {
    return tensors_[tensor].growing->dims();
  }
  return recorded_ != nullptr ? recorded_->outputs[tensor]
                              : way_->context->ShapeOf(info(tensor).name.c_str());
}

Result<std::shared_ptr<char>> Execution::Fetch(size_t t, uint64_t size) {
  Tensor& tensor = tensors_[t];
  if (tensor.growing == nullptr && size > tensor.capacity) {
    return Error::Internal(StrCat("unexpected size for output '", info(t).name, "', byte-size ",
                                  tensor.capacity, " is less than ", size));
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<char> block,
                    tensor.pool->Take(std::max(size, tensor.capacity)));
  if (size > 0) {
    const DeviceAddress from =
        tensor.growing != nullptr ? tensor.growing->address() : tensor.device->address();
    NEREID_KIT_TRY(
        driver().Check(driver().functions().copy_to_host(block.get(), from, size, output_stream()),
                       "cuMemcpyDtoHAsync"));
  }
  return block;
}

Error Execution::CopyOnDevice(size_t t, uint64_t offset, uint64_t size, DeviceAddress to) {
  const Tensor& tensor = tensors_[t];
  const DeviceAddress from =
      tensor.growing != nullptr ? tensor.growing->address() : tensor.device->address();
  return driver().Check(driver().functions().copy(to, from + offset, size, output_stream()),
                        "cuMemcpyAsync");
}

Error Execution::Wait() {
  const DriverFunctions& f = driver().functions();
  NEREID_KIT_TRY(driver().Check(f.record_event(done_->handle(), output_stream()), "cuEventRecord"));
  return driver().Check(f.wait_for_event(done_->handle()), "cuEventSynchronize");
}

uint64_t Execution::device_bytes() const {
  uint64_t sum = 0;
  for (const Tensor& tensor : tensors_) {
    sum += tensor.device != nullptr ? tensor.device->size() : 0;
  }
  return sum;
}

uint64_t Execution::pinned_bytes() const {
  uint64_t sum = 0;
  for (const Tensor& tensor : tensors_) {
    sum += tensor.staging != nullptr ? tensor.staging->size() : 0;
    sum += tensor.host != nullptr ? tensor.host->size() : 0;
  }
  return sum;
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
