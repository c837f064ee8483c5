// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/binding.h"

#include <algorithm>
#include <set>

#include "backend_kit/shape.h"

namespace nereid::tensorrt {

using backend::ConfiguredName;
using backend::Error;
using backend::InputPort;
using backend::ModelConfig;
using backend::OutputPort;
using backend::Ports;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;

namespace {

using Origin = InputPort::Origin;

bool Fits(std::span<const int64_t> engine, std::span<const int64_t> dims) {
  return std::equal(engine.begin(), engine.end(), dims.begin(), dims.end(),
                    [](int64_t e, int64_t d) { return e == d || e == -1 || d == -1; });
}

// Compares one configuration with one engine.
class Binder {
 public:
  Binder(const ModelConfig& config, const std::vector<TensorInfo>& tensors,
         const std::string& model, const std::string& owner)
      : tensors_(tensors),
        model_(model),
        owner_(owner),
        is_batching_(config.max_batch_size() > 0) {}

  Result<Binding> Run(const Ports& ports) {
    Binding binding;
    for (const InputPort& port : ports.inputs) {
      NEREID_KIT_ASSIGN(const size_t at, FindPort(port.name, true));
      NEREID_KIT_TRY(CheckInput(port, tensors_[at]));
      binding.inputs.push_back(at);
    }
    for (const OutputPort& port : ports.outputs) {
      NEREID_KIT_ASSIGN(const size_t at, FindPort(port.name, false));
      NEREID_KIT_TRY(CheckOutput(port, tensors_[at]));
      binding.outputs.push_back(at);
    }
    for (const TensorInfo& tensor : tensors_) {
      const bool is_configured = tensor.is_input
                                     ? Ports::FindPort(ports.inputs, 0, tensor.name) >= 0
                                     : Ports::FindPort(ports.outputs, 0, tensor.name) >= 0;
      if (!is_configured) {
        return Error::InvalidArgument(StrCat("expected configuration for ",
                                             tensor.is_input ? "input" : "output", " '",
                                             tensor.name, "' for ", owner_));
      }
    }
    return binding;
  }

 private:
  Result<size_t> FindPort(const std::string& name, bool is_input) const {
    const int at = FindTensor(tensors_, name);
    if (at >= 0 && tensors_[static_cast<size_t>(at)].is_input == is_input) {
      return static_cast<size_t>(at);
    }
    std::set<std::string_view> allowed;
    for (const TensorInfo& tensor : tensors_) {
      if (tensor.is_input == is_input) {
        allowed.insert(tensor.name);
      }
    }
    std::string names;
    for (const std::string_view one : allowed) {
      names += StrCat(names.empty() ? "" : ", ", one);
    }
    const char* const kind = is_input ? "input" : "output";
    return Error::InvalidArgument(
        StrCat("unexpected inference ", kind, " '", name, "', allowed ", kind, "s are: ", names));
  }

  Error CheckType(const TensorInfo& tensor, TRITONSERVER_DataType configured) const {
    const char* const kind = tensor.is_input ? "input" : "output";
    if (tensor.datatype != TRITONSERVER_TYPE_INVALID && tensor.datatype == configured) {
      return {};
    }
    return Error::InvalidArgument(
        StrCat("unexpected datatype ", ConfiguredName(tensor.datatype), " for inference ", kind,
               " '", tensor.name, "', expecting ", ConfiguredName(configured), " for ", owner_));
  }

  // Compares the marks of the configuration with what the tensor is.
  Error CheckMarks(const TensorInfo& tensor, bool is_marked_shape) const {
    const std::string subject = StrCat(tensor.is_input ? "input" : "output", " '", tensor.name,
                                       "' for model '", model_, "' ");
    if (tensor.is_shape && !is_marked_shape) {
      return Error::Internal(StrCat(
          subject,
          "is a shape tensor but the model configuration doesn't mark it as a shape tensor."));
    }
    if (!tensor.is_shape && is_marked_shape) {
      return Error::Internal(
          StrCat(subject, "is incorrectly marked as a shape tensor in the model configuration."));
    }
    if (!tensor.is_linear) {
      return Error::Unsupported(
          StrCat(subject, "uses a non-linear IO format (", tensor.format,
                 "), which is not supported: build the plan with linear inputs and outputs"));
    }
    return {};
  }

  Error CheckInput(const InputPort& port, const TensorInfo& tensor) const {
    NEREID_KIT_TRY(CheckMarks(tensor, port.is_shape_tensor));
    NEREID_KIT_TRY(CheckType(tensor, port.datatype));
    if (tensor.is_shape) {
      return CheckShapeTensor(tensor, port.dims);
    }
    const auto dims = tensor.dims.span();
    if (port.origin == Origin::kBatchInput) {
      return {};
    }
    if (port.is_ragged) {
      if (dims.size() == 1 && !port.dims.empty() && dims[0] == port.dims[0]) {
        return {};
      }
      return Error::InvalidArgument(StrCat(
          "model '", model_, "', tensor '", tensor.name,
          "': for the model to support ragged input, the engine shape is: ", ShapeToString(dims),
          " while the model config shape is: ", ShapeToString(port.dims)));
    }
    if (port.origin == Origin::kControl && tensor.has_variable_dims()) {
      return CheckControl(tensor);
    }
    return CheckDims(tensor, port.dims);
  }

  Error CheckOutput(const OutputPort& port, const TensorInfo& tensor) const {
    NEREID_KIT_TRY(CheckMarks(tensor, port.is_shape_tensor));
    NEREID_KIT_TRY(CheckType(tensor, port.datatype));
    if (tensor.is_shape) {
      return CheckShapeTensor(tensor, port.dims);
    }
    return port.scatter ? Error() : CheckDims(tensor, port.dims);
  }

  Error CheckControl(const TensorInfo& tensor) const {
    const auto dims = tensor.dims.span();
    const bool fits = !dims.empty() && dims[0] == (is_batching_ ? -1 : 1) &&
                      std::all_of(dims.begin() + 1, dims.end(), [](int64_t d) { return d == 1; });
    if (fits) {
      return {};
    }
    return Error::InvalidArgument(StrCat("unexpected shape ", ShapeToString(dims),
                                         " for control input '", tensor.name, "' for model ",
                                         model_, ": expects the first dimension to be ",
                                         is_batching_ ? -1 : 1, " and all others to be 1"));
  }

  Error CheckDims(const TensorInfo& tensor, std::vector<int64_t> dims) const {
    const auto engine = tensor.dims.span();
    const std::string subject = StrCat("model '", model_, "', tensor '", tensor.name, "': ");
    if (is_batching_ && engine.empty()) {
      return Error::InvalidArgument(
          StrCat(subject,
                 "for the model to support batching the shape should have at least 1 dimension; "
                 "but shape expected by the model is ",
                 ShapeToString(engine)));
    }
    if (is_batching_) {
      dims.insert(dims.begin(), -1);
    }
    if (Fits(engine, dims)) {
      return {};
    }
    return Error::InvalidArgument(StrCat(
        subject, "the model expects ", engine.size(), " dimensions (shape ", ShapeToString(engine),
        ") but the model configuration specifies ", dims.size(), " dimensions (",
        is_batching_ ? "an initial batch dimension because max_batch_size > 0 followed by "
                       "the explicit tensor shape, making complete shape "
                     : "shape ",
        ShapeToString(dims), ")"));
  }

  Error CheckShapeTensor(const TensorInfo& tensor, std::span<const int64_t> dims) const {
    const auto engine = tensor.dims.span();
    if (engine.size() > 1) {
      return Error::Internal(StrCat("unable to load model '", model_, "', shape binding '",
                                    tensor.name, "' can only be 0-d or 1-D tensor, got ",
                                    ShapeToString(engine)));
    }
    if (tensor.datatype != TRITONSERVER_TYPE_INT32 && tensor.datatype != TRITONSERVER_TYPE_INT64) {
      return Error::InvalidArgument(StrCat("unexpected datatype ", ConfiguredName(tensor.datatype),
                                           " in model configuration for shape ",
                                           tensor.is_input ? "input" : "output", " '", tensor.name,
                                           "', expecting TYPE_INT32 or TYPE_INT64 for ", owner_));
    }
    const int64_t batch = is_batching_ ? 1 : 0;  // the first value is the batch size
    const bool fits =
        engine.empty() ? dims.empty() : dims.size() == 1 && dims[0] + batch == engine[0];
    if (fits) {
      return {};
    }
    return Error::Internal(StrCat("unable to load model '", model_, "', binding '", tensor.name,
                                  "' shape expected by framework ", ShapeToString(engine),
                                  " doesn't match model configuration shape ",
                                  ShapeToString(dims)));
  }

  const std::vector<TensorInfo>& tensors_;
  const std::string& model_;
  const std::string& owner_;
  const bool is_batching_;
};

}  // namespace

Result<Binding> Bind(const Ports& ports, const ModelConfig& config,
                     const std::vector<TensorInfo>& tensors, const std::string& model,
                     const std::string& owner) {
  const auto inputs = static_cast<size_t>(std::count_if(
      tensors.begin(), tensors.end(), [](const TensorInfo& t) { return t.is_input; }));
  if (const size_t configured = config.tensors("input").Size(); configured > inputs) {
    return Error::InvalidArgument(StrCat("unable to load model '", model,
                                         "', configuration expects ", configured,
                                         " inputs, model provides at most ", inputs));
  }
  return Binder(config, tensors, model, owner).Run(ports);
}

}  // namespace nereid::tensorrt
