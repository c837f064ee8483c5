// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/profile_context.h"

#include <algorithm>

#include "backend_kit/shape.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

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

Result<ProfileContext> ProfileContext::Create(const Owner& owner, Profile profile,
                                              StreamHandle stream) {
  NEREID_KIT_ASSIGN(std::unique_ptr<Context> context, owner.engine.NewContext());
  const int index = profile.index();
  // A new context has the first profile.
  if (index != 0 && !context->SetProfile(index, stream)) {
    return Error::InvalidArgument(StrCat("Can not set the specified optimization profile ",
                                         profile.name(), "[", index, "] for ", owner.name,
                                         ". Expected optimization profile index range 0-",
                                         owner.engine.profile_count() - 1));
  }
  ProfileContext made(owner, std::move(profile), std::move(context));
  NEREID_KIT_TRY(made.Wait(stream));
  return made;
}

ProfileContext::ProfileContext(const Owner& owner, Profile profile,
                               std::unique_ptr<Context> context)
    : owner_(owner),
      profile_(std::move(profile)),
      context_(std::move(context)),
      current_(owner.engine.tensors().size()) {}

Error ProfileContext::Wait(StreamHandle stream) const {
  const Driver& driver = *owner_.device.driver;
  return driver.Check(driver.functions().wait_for_stream(stream), "cuStreamSynchronize");
}

Error ProfileContext::SetShape(size_t tensor, const Dims& dims) {
  if (!info(tensor).has_variable_dims() || IsSame(current_[tensor], dims.span())) {
    return {};
  }
  if (!context_->SetInputShape(info(tensor).name.c_str(), dims)) {
    return Error::Internal(StrCat("trt failed to set binding dimension to ",
                                  backend::ShapeToString(dims.span()), " for input '",
                                  info(tensor).name, "' for ", owner_.name));
  }
  current_[tensor] = dims;
  return {};
}

Error ProfileContext::InferShapes() {
  return context_->InferShapes() == 0
             ? Error()
             : Error::Internal(
                   "failed to specify the dimensions of all input tensors or values of all input "
                   "shape tensors");
}

Error ProfileContext::Enqueue(std::span<const InputCall> inputs, StreamHandle stream) {
  for (size_t t = 0; t < inputs.size(); ++t) {
    if (info(t).is_input && !info(t).is_shape) {
      NEREID_KIT_TRY(SetShape(t, ToDims(inputs[t].shape)));
    }
  }
  NEREID_KIT_TRY(InferShapes());
  if (!context_->Enqueue(stream)) {
    return Error::Internal(StrCat("unable to enqueue for inference ", owner_.name));
  }
  return {};
}

Error ProfileContext::Record(GraphShapes shapes, StreamHandle stream) {
  RecordedGraph recorded{.shapes = std::move(shapes), .graph = {}, .outputs = {}};
  const std::vector<TensorInfo>& tensors = owner_.engine.tensors();
  std::vector<InputCall> calls(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    calls[t].shape = recorded.shapes.inputs[t].span();
  }
  NEREID_KIT_TRY(profile_.Check(calls, owner_.name));
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].is_input) {
      NEREID_KIT_TRY(SetShape(t, recorded.shapes.inputs[t]));
    }
  }
  NEREID_KIT_TRY(InferShapes());
  // The first execution with new shapes may allocate, which cannot be recorded.
  if (!context_->Enqueue(stream)) {
    return Error::Internal("TensorRT could not enqueue the execution");
  }
  NEREID_KIT_TRY(Wait(stream));
  NEREID_KIT_ASSIGN(recorded.graph, Graph::Record(owner_.device, stream,
                                                  [&] { return context_->Enqueue(stream); }));
  for (const TensorInfo& tensor : tensors) {
    recorded.outputs.push_back(tensor.is_input ? Dims() : context_->ShapeOf(tensor.name.c_str()));
  }
  graphs_.push_back(std::move(recorded));
  return {};
}

const RecordedGraph* ProfileContext::FindGraph(std::span<const InputCall> inputs) const {
  const RecordedGraph* larger = nullptr;
  for (const RecordedGraph& one : graphs_) {
    if (one.shapes.IsExactly(inputs)) {
      return &one;
    }
    if (larger == nullptr && one.shapes.Holds(inputs)) {
      larger = &one;
    }
  }
  return larger;
}

}  // namespace nereid::tensorrt
