// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/ov/request.h"

#include <cstring>

#include "backend_kit/output_writer.h"
#include "openvino_backend/ov/guarded.h"

namespace nereid::openvino {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// The library computes with 32 bits where a model has 64, and would cut values off.
Error CheckRange(const TensorInfo& info, const char* data, size_t count) {
  for (size_t e = 0; e < count; ++e) {
    int64_t value = 0;
    std::memcpy(&value, data + e * sizeof(value), sizeof(value));
    if (value < INT32_MIN || value > INT32_MAX) {
      return Error::InvalidArgument(StrCat("input '", info.name, "' has a value beyond 32 bits, ",
                                           "with which OpenVINO computes where a model has ",
                                           info.type));
    }
  }
  return {};
}

}  // namespace

OvRequest::OvRequest(ov::CompiledModel& compiled, const Signature& signature)
    : signature_(signature),
      input_ports_(compiled.inputs()),
      request_(compiled.create_infer_request()),
      outputs_(signature.outputs.size()) {
  is_stateful_ = !request_.query_state().empty();
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const auto& port = compiled.outputs()[o];
    std::vector<size_t> shape;
    const ov::PartialShape& declared = port.get_partial_shape();
    for (int64_t d = 0; declared.rank().is_static() && d < declared.rank().get_length(); ++d) {
      shape.push_back(declared[d].is_static() ? static_cast<size_t>(declared[d].get_length()) : 0);
    }
    if (declared.rank().is_dynamic()) {
      shape.push_back(0);
    }
    GiveMemory(o, ov::Tensor(port.get_element_type(), ov::Shape(shape)));
  }
}

Error OvRequest::Run(std::span<const CallInput> inputs) {
  return Guarded([&]() -> Error {
    for (size_t i = 0; i < inputs.size(); ++i) {
      NEREID_KIT_TRY(SetInput(i, inputs[i]));
    }
    RenewOutputs();
    // Variables inside the model would otherwise keep what another request has left.
    if (is_stateful_) {
      for (ov::VariableState& state : request_.query_state()) {
        state.reset();
      }
    }
    request_.infer();
    return {};
  });
}

Result<CallOutput> OvRequest::Output(size_t o) {
  return Guarded([&]() -> Result<CallOutput> { return ReadOutput(o); });
}

Error OvRequest::SetInput(size_t i, const CallInput& input) {
  const TensorInfo& info = signature_.inputs[i];
  if (!input.is_present) {
    return Error::InvalidArgument(
        StrCat("input '", info.name, "' is missing, without which the model cannot run"));
  }
  const ov::PartialShape& expected = input_ports_[i].get_partial_shape();
  ov::Shape shape(input.shape.begin(), input.shape.end());
  if (expected.rank().is_static() && expected.rank().get_length() == 0 &&
      ov::shape_size(shape) == 1) {
    shape.clear();  // a configuration cannot have no dimensions
  }
  if (!expected.compatible(ov::PartialShape(shape))) {
    return Error::InvalidArgument(StrCat("input '", info.name, "' has shape ",
                                         backend::ShapeToString(input.shape), ", the model takes ",
                                         expected.to_string()));
  }
  const ov::element::Type& type = input_ports_[i].get_element_type();
  if (type == ov::element::i64 || type == ov::element::u64) {
    NEREID_KIT_TRY(CheckRange(info, input.data, ov::shape_size(shape)));
  }
  if (type != ov::element::string) {
    request_.set_input_tensor(i, ov::Tensor(type, shape, const_cast<char*>(input.data)));
    return {};
  }
  ov::Tensor tensor(type, shape);
  auto* const texts = tensor.data<std::string>();
  for (size_t e = 0; e < input.strings.size(); ++e) {
    texts[e] = input.strings[e];
  }
  request_.set_input_tensor(i, tensor);
  return {};
}

void OvRequest::GiveMemory(size_t o, ov::Tensor tensor) {
  request_.set_output_tensor(o, tensor);
  outputs_[o].tensor = std::move(tensor);
  outputs_[o].is_lent = false;
}

void OvRequest::RenewOutputs() {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const OutputSlot& slot = outputs_[o];
    if (slot.is_lent) {
      // The new memory is as large as the last; the library enlarges it for a larger result.
      GiveMemory(o, ov::Tensor(slot.tensor.get_element_type(), slot.tensor.get_shape()));
    }
  }
}

CallOutput OvRequest::ReadOutput(size_t o) {
  OutputSlot& slot = outputs_[o];
  const ov::Shape& shape = slot.tensor.get_shape();
  slot.shape.assign(shape.begin(), shape.end());
  CallOutput output{.shape = slot.shape};
  if (slot.tensor.get_element_type() == ov::element::string) {
    const auto* const texts = slot.tensor.data<const std::string>();
    slot.strings.assign(texts, texts + slot.tensor.get_size());
    output.strings = slot.strings;
    return output;
  }
  if (slot.tensor.get_size() > 0) {
    output.data = static_cast<const char*>(slot.tensor.data());
  }
  if (slot.tensor.get_byte_size() >= backend::OutputWriter::kMinLentBytes) {
    output.keeper = std::make_shared<ov::Tensor>(slot.tensor);
    slot.is_lent = true;
  }
  return output;
}

}  // namespace nereid::openvino
