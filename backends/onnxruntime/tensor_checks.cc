// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/tensor_checks.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include "backend_kit/shape.h"
#include "onnxruntime_backend/data_types.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::ShapeToString;
using backend::StrCat;
using backend::StringMember;

namespace {

// Whether `dims` of the configuration fit the model's. An input may be more specific than the model
// (`exact` false): a variable dimension of the model fits anything.
bool Fits(std::span<const int64_t> model, std::span<const int64_t> dims, bool exact) {
  return std::equal(model.begin(), model.end(), dims.begin(), dims.end(),
                    [exact](int64_t m, int64_t d) { return m == d || (!exact && m == -1); });
}

Error CheckDims(const CheckContext& context, const TensorInfo& tensor, std::vector<int64_t> dims,
                bool exact) {
  const std::string intro = StrCat("model '", context.model, "', tensor '", tensor.name, "': ");
  const std::string model_shape = ShapeToString(tensor.dims);
  if (!context.batching) {
    if (Fits(tensor.dims, dims, exact)) {
      return {};
    }
    return Error::InvalidArgument(StrCat(intro, "the model expects ", tensor.dims.size(),
                                         " dimensions (shape ", model_shape,
                                         ") but the model configuration specifies ", dims.size(),
                                         " dimensions (shape ", ShapeToString(dims), ")"));
  }
  if (tensor.dims.empty() || tensor.dims[0] != -1) {
    return Error::InvalidArgument(
        StrCat(intro,
               "for the model to support batching the shape should have at least 1 dimension and "
               "the first dimension must be -1; but shape expected by the model is ",
               model_shape));
  }
  dims.insert(dims.begin(), -1);
  if (Fits(tensor.dims, dims, exact)) {
    return {};
  }
  return Error::InvalidArgument(
      StrCat(intro, "the model expects ", tensor.dims.size(), " dimensions (shape ", model_shape,
             ") but the model configuration specifies ", dims.size(),
             " dimensions (an initial batch dimension because max_batch_size > 0 followed by the "
             "explicit tensor shape, making complete shape ",
             ShapeToString(dims), ")"));
}

// Checks a tensor without dimensions in the model, which in the configuration has dimensions of
// one.
Error CheckScalar(const CheckContext& context, const TensorInfo& tensor,
                  const std::vector<int64_t>& dims) {
  if (std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; })) {
    return {};
  }
  return context.Unable("scalar tensor '", tensor.name,
                        "', should only provide 1 in the model configuration when the model "
                        "doesn't support batching. Model configuration provided: ",
                        ShapeToString(dims), ".");
}

}  // namespace

std::string NamesOf(std::initializer_list<const std::vector<TensorInfo>*> lists) {
  std::set<std::string_view> sorted;
  for (const auto* list : lists) {
    for (const TensorInfo& tensor : *list) {
      sorted.insert(tensor.name);
    }
  }
  std::string text;
  for (const std::string_view name : sorted) {
    text += text.empty() ? "" : ", ";
    text += name;
  }
  return text;
}

Error CheckShape(const CheckContext& context, const TensorInfo& tensor,
                 const std::vector<int64_t>& dims, bool exact) {
  return tensor.dims.empty() ? CheckScalar(context, tensor, dims)
                             : CheckDims(context, tensor, dims, exact);
}

Error CheckType(const CheckContext& context, const rapidjson::Value& io, const TensorInfo& tensor,
                const char* what) {
  const std::string_view declared = StringMember(io, "data_type");
  const ONNXTensorElementDataType type = FromConfigName(declared);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
    return Error::Internal(StrCat("unsupported datatype ", declared, " for ", what, " '",
                                  tensor.name, "' for model '", context.model, "'"));
  }
  if (type != tensor.type) {
    return context.Unable("configuration expects datatype ", declared, " for ", what, " '",
                          tensor.name, "', model provides TYPE_", ServerName(tensor.type));
  }
  return {};
}

}  // namespace nereid::onnxruntime
