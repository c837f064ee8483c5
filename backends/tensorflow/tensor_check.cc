// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/tensor_check.h"

#include <algorithm>

#include "backend_kit/shape.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

using backend::ConfiguredName;
using backend::Error;
using backend::InputPort;
using backend::OutputPort;
using backend::ShapeToString;
using backend::StrCat;

namespace {

using Origin = InputPort::Origin;

// Whether the configuration's shape fits the model's. A dimension that the model leaves open may
// have any size in the configuration; `is_exact`: but not the other way round.
bool Fits(std::span<const int64_t> model, std::span<const int64_t> dims, bool is_exact) {
  return std::equal(
      model.begin(), model.end(), dims.begin(), dims.end(),
      [&](int64_t m, int64_t d) { return m == d || m == -1 || (!is_exact && d == -1); });
}

Error CheckDims(const std::string& name, const TensorInfo& info, std::vector<int64_t> dims,
                bool is_batching, bool is_exact, const std::string& model) {
  if (!info.has_rank) {
    return {};
  }
  if (is_batching && (info.dims.empty() || info.dims[0] != -1)) {
    return Error::InvalidArgument(StrCat(
        "model '", model, "', tensor '", name,
        "': for the model to support batching the shape should have at least 1 dimension and the "
        "first dimension must be -1; but shape expected by the model is ",
        ShapeToString(info.dims)));
  }
  if (is_batching) {
    dims.insert(dims.begin(), -1);
  }
  if (Fits(info.dims, dims, is_exact) || (!is_batching && IsScalar(info) && HasOneElement(dims))) {
    return {};
  }
  return Error::InvalidArgument(
      StrCat("model '", model, "', tensor '", name, "': the model expects ", info.dims.size(),
             " dimensions (shape ", ShapeToString(info.dims),
             ") but the model configuration specifies ", dims.size(), " dimensions (",
             is_batching
                 ? "an initial batch dimension because max_batch_size > 0 followed by the explicit "
                   "tensor shape, making complete shape "
                 : "shape ",
             ShapeToString(dims), ")"));
}

std::string ModelType(const TensorInfo& info) {
  const TRITONSERVER_DataType type = OurType(info.type);
  return type == TRITONSERVER_TYPE_INVALID ? TheirName(info.type) : ConfiguredName(type);
}

Error CheckControl(const InputPort& port, const TensorInfo& info, bool is_batching,
                   const std::string& model) {
  const Error dims = CheckDims(port.name, info, {1}, is_batching, true, model);
  if (!dims.ok()) {
    return Error::InvalidArgument(StrCat("unable to load model '", model, "', sequence control '",
                                         port.name, "': ", dims.message()));
  }
  if (TheirType(port.datatype) != info.type) {
    return Error::InvalidArgument(StrCat("unable to load model '", model, "', sequence control '",
                                         port.name, "': the model expects ", ModelType(info),
                                         " but the model configuration specifies data-type ",
                                         ConfiguredName(port.datatype)));
  }
  return {};
}

}  // namespace

bool HasOneElement(std::span<const int64_t> dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; });
}

Error CheckType(const char* what, const std::string& name, const TensorInfo& info,
                TRITONSERVER_DataType type, const std::string& model) {
  if (OurType(info.type) == TRITONSERVER_TYPE_INVALID) {
    return Error::InvalidArgument(StrCat("unable to process ", what, " '", name, "' for '", model,
                                         "', unsupported datatype '", TheirName(info.type), "'"));
  }
  if (TheirType(type) == 0) {
    return Error::InvalidArgument(StrCat("unsupported datatype '", ConfiguredName(type),
                                         "' for tensor '", name, "' for model '", model, "'"));
  }
  if (TheirType(type) != info.type) {
    return Error::InvalidArgument(StrCat(
        "unable to load model '", model, "', configuration expects datatype ", ConfiguredName(type),
        " for ", what, " '", name, "', model provides ", ModelType(info)));
  }
  return {};
}

Error CheckInput(const InputPort& port, const TensorInfo& info, bool is_batching,
                 const std::string& model) {
  if (port.origin == Origin::kControl) {
    return CheckControl(port, info, is_batching, model);
  }
  if (info.place.empty()) {
    return Error::Unsupported(StrCat("unable to load model '", model, "', input '", port.name,
                                     "' is a sparse or composite tensor, which is not supported"));
  }
  const bool has_own_shape = port.is_ragged || port.origin == Origin::kBatchInput;
  if (port.is_ragged && info.has_rank && info.dims != std::vector<int64_t>{-1}) {
    return Error::InvalidArgument(
        StrCat("unable to load model '", model,
               "', configuration expects model provides input with shape [-1]  for ragged input '",
               port.name, "', model provides ", ShapeToString(info.dims)));
  }
  if (!has_own_shape) {
    NEREID_KIT_TRY(CheckDims(port.name, info, port.dims, is_batching, true, model));
  }
  return CheckType("input", port.name, info, port.datatype, model);
}

Error CheckOutput(const OutputPort& port, const TensorInfo& info, bool is_batching,
                  const std::string& model) {
  if (info.place.empty()) {
    return Error::Unsupported(StrCat("unable to load model '", model, "', output '", port.name,
                                     "' is a sparse or composite tensor, which is not supported"));
  }
  // The shape of an output that is split by an input's shape is not that of the model.
  if (!port.scatter) {
    NEREID_KIT_TRY(CheckDims(port.name, info, port.dims, is_batching, false, model));
  }
  return CheckType("output", port.name, info, port.datatype, model);
}

}  // namespace nereid::tensorflow
