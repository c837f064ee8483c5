// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/ov/describe.h"

#include <algorithm>
#include <array>

namespace nereid::openvino {
namespace {

struct TypePair {
  TRITONSERVER_DataType ours;
  ov::element::Type_t theirs;
};

constexpr std::array<TypePair, 14> kTypes = {{
    {TRITONSERVER_TYPE_BOOL, ov::element::Type_t::boolean},
    {TRITONSERVER_TYPE_UINT8, ov::element::Type_t::u8},
    {TRITONSERVER_TYPE_UINT16, ov::element::Type_t::u16},
    {TRITONSERVER_TYPE_UINT32, ov::element::Type_t::u32},
    {TRITONSERVER_TYPE_UINT64, ov::element::Type_t::u64},
    {TRITONSERVER_TYPE_INT8, ov::element::Type_t::i8},
    {TRITONSERVER_TYPE_INT16, ov::element::Type_t::i16},
    {TRITONSERVER_TYPE_INT32, ov::element::Type_t::i32},
    {TRITONSERVER_TYPE_INT64, ov::element::Type_t::i64},
    {TRITONSERVER_TYPE_FP16, ov::element::Type_t::f16},
    {TRITONSERVER_TYPE_BF16, ov::element::Type_t::bf16},
    {TRITONSERVER_TYPE_FP32, ov::element::Type_t::f32},
    {TRITONSERVER_TYPE_FP64, ov::element::Type_t::f64},
    {TRITONSERVER_TYPE_BYTES, ov::element::Type_t::string},
}};

TRITONSERVER_DataType OurType(const ov::element::Type& type) {
  for (const TypePair& pair : kTypes) {
    if (type == pair.theirs) {
      return pair.ours;
    }
  }
  return TRITONSERVER_TYPE_INVALID;
}

template <typename Port>
TensorInfo Describe(const Port& port, bool is_output) {
  TensorInfo info;
  info.names.assign(port.get_names().begin(), port.get_names().end());
  std::sort(info.names.begin(), info.names.end());
  if (info.names.empty()) {
    // Files of other frameworks, and of older versions, have names of nodes only.
    const auto node = is_output ? port.get_node()->input_value(0).get_node_shared_ptr()
                                : port.get_node_shared_ptr();
    info.names.push_back(node->get_friendly_name());
  }
  info.name = port.get_names().empty() ? info.names[0] : port.get_any_name();
  info.type = port.get_element_type().get_type_name();
  info.datatype = OurType(port.get_element_type());
  const ov::PartialShape& shape = port.get_partial_shape();
  info.has_rank = shape.rank().is_static();
  for (int64_t d = 0; info.has_rank && d < shape.rank().get_length(); ++d) {
    const ov::Dimension& dim = shape[d];
    info.dims.push_back(dim.is_static() ? dim.get_length() : -1);
  }
  const ov::Layout layout = ov::layout::get_layout(port);
  info.has_batch_layout =
      !info.dims.empty() && ov::layout::has_batch(layout) && ov::layout::batch_idx(layout) == 0;
  return info;
}

}  // namespace

Signature DescribeAll(const ov::Model& model) {
  Signature signature;
  for (const auto& input : model.inputs()) {
    signature.inputs.push_back(Describe(input, false));
  }
  for (const auto& output : model.outputs()) {
    signature.outputs.push_back(Describe(output, true));
  }
  return signature;
}

ov::element::Type TheirType(TRITONSERVER_DataType type) {
  for (const TypePair& pair : kTypes) {
    if (type == pair.ours) {
      return pair.theirs;
    }
  }
  return ov::element::dynamic;
}

}  // namespace nereid::openvino
