// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/types.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Formatting.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <array>
#include <atomic>
#include <utility>

namespace nereid::pytorch {

namespace {

constexpr std::array<std::pair<TRITONSERVER_DataType, at::ScalarType>, 13> kTypes = {{
    {TRITONSERVER_TYPE_BOOL, at::ScalarType::Bool},
    {TRITONSERVER_TYPE_UINT8, at::ScalarType::Byte},
    {TRITONSERVER_TYPE_UINT16, at::ScalarType::UInt16},
    {TRITONSERVER_TYPE_UINT32, at::ScalarType::UInt32},
    {TRITONSERVER_TYPE_UINT64, at::ScalarType::UInt64},
    {TRITONSERVER_TYPE_INT8, at::ScalarType::Char},
    {TRITONSERVER_TYPE_INT16, at::ScalarType::Short},
    {TRITONSERVER_TYPE_INT32, at::ScalarType::Int},
    {TRITONSERVER_TYPE_INT64, at::ScalarType::Long},
    {TRITONSERVER_TYPE_FP16, at::ScalarType::Half},
    {TRITONSERVER_TYPE_FP32, at::ScalarType::Float},
    {TRITONSERVER_TYPE_FP64, at::ScalarType::Double},
    {TRITONSERVER_TYPE_BF16, at::ScalarType::BFloat16},
}};

ValueType::Kind LeafKind(const c10::Type& type) {
  using Kind = ValueType::Kind;
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return Kind::kTensor;
    case c10::TypeKind::BoolType:
      return Kind::kBool;
    case c10::TypeKind::IntType:
      return Kind::kInt;
    case c10::TypeKind::FloatType:
      return Kind::kFloat;
    case c10::TypeKind::StringType:
      return Kind::kString;
    default:
      return Kind::kOther;
  }
}

// A list of scalars or strings is one tensor.
ValueType::Kind ListKind(const c10::Type& element) {
  using Kind = ValueType::Kind;
  switch (LeafKind(element)) {
    case Kind::kBool:
      return Kind::kBools;
    case Kind::kInt:
      return Kind::kInts;
    case Kind::kFloat:
      return Kind::kFloats;
    case Kind::kString:
      return Kind::kStrings;
    default:
      return Kind::kList;
  }
}

}  // namespace

std::optional<at::ScalarType> ToScalarType(TRITONSERVER_DataType datatype) {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == datatype) {
      return theirs;
    }
  }
  return std::nullopt;
}

TRITONSERVER_DataType ToServerType(at::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == type) {
      return ours;
    }
  }
  return TRITONSERVER_TYPE_INVALID;
}

ValueType ToValueType(const c10::Type& type) {
  using Kind = ValueType::Kind;
  ValueType value{.kind = LeafKind(type), .text = type.annotation_str()};
  if (const auto* list = type.castRaw<c10::ListType>()) {
    value.kind = ListKind(*list->getElementType());
    if (value.kind == Kind::kList) {
      value.elements.push_back(ToValueType(*list->getElementType()));
    }
  } else if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    value.kind = Kind::kOptional;
    value.elements.push_back(ToValueType(*optional->getElementType()));
  } else if (const auto* dict = type.castRaw<c10::DictType>()) {
    if (dict->getKeyType()->kind() == c10::TypeKind::StringType) {
      value.kind = Kind::kDict;
      value.elements.push_back(ToValueType(*dict->getValueType()));
    }
  } else if (const auto* tuple = type.castRaw<c10::TupleType>()) {
    value.kind = Kind::kTuple;
    for (const c10::TypePtr& element : tuple->elements()) {
      value.elements.push_back(ToValueType(*element));
    }
    if (tuple->schema()) {
      for (const c10::Argument& field : tuple->schema()->arguments()) {
        value.fields.push_back(field.name());
      }
    }
  }
  return value;
}

std::string MessageOf(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  std::string text = ours == nullptr ? error.what() : ours->what_without_backtrace();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

at::Tensor ViewOf(const CallInput& input, const std::optional<c10::Device>& gpu) {
  const at::IntArrayRef shape(input.shape.data(), input.shape.size());
  const auto options = at::TensorOptions()
                           .dtype(ToScalarType(input.datatype))
                           .device(input.is_on_gpu ? *gpu : c10::Device(c10::kCPU));
  if (input.data == nullptr || c10::multiply_integers(shape) == 0) {
    return at::empty(shape, options);
  }
  return at::from_blob(const_cast<char*>(input.data), shape, options);
}

at::Tensor Plain(const at::Tensor& tensor, const std::optional<c10::Device>& gpu) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized() ||
      ToServerType(tensor.scalar_type()) == TRITONSERVER_TYPE_INVALID) {
    return {};
  }
  const bool stays = gpu && tensor.device() == *gpu;
  return (stays ? tensor : tensor.cpu()).resolve_neg().contiguous();
}

void Describe(const at::Tensor& tensor, ResultTensor* result) {
  const at::IntArrayRef shape = tensor.sizes();
  result->datatype = ToServerType(tensor.scalar_type());
  result->shape = {shape.data(), shape.size()};
  result->data = static_cast<const char*>(tensor.const_data_ptr());
  result->is_on_gpu = !tensor.is_cpu();
  result->byte_size = tensor.nbytes();
}

void ApplyThreadCounts(const Settings& settings) {
  static std::atomic_flag intra_op_is_set;
  static std::atomic_flag inter_op_is_set;
  if (settings.intra_op_threads > 0 && !intra_op_is_set.test_and_set()) {
    at::set_num_threads(settings.intra_op_threads);
  }
  if (settings.inter_op_threads > 0 && !inter_op_is_set.test_and_set()) {
    try {
      at::set_num_interop_threads(settings.inter_op_threads);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // An earlier model has made PyTorch start its threads; their number stays, as in Triton.
    }
  }
}

}  // namespace nereid::pytorch
