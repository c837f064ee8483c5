// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/validate.h"

#include <algorithm>

namespace nereid::pytorch {

using backend::Error;
using backend::InputPort;
using backend::OutputPort;
using backend::Ports;
using backend::StrCat;

namespace {

// Every type of fixed size exists in PyTorch as well; BYTES are lists of strings.
bool IsSupported(TRITONSERVER_DataType datatype) {
  return datatype == TRITONSERVER_TYPE_BYTES || backend::ElementByteSize(datatype) > 0;
}

template <typename Port>
Error CheckPort(const Port& port, const char* what, bool is_batching, const std::string& model) {
  if (!IsSupported(port.datatype)) {
    return Error::Internal(StrCat("unsupported datatype TYPE_",
                                  TRITONSERVER_DataTypeString(port.datatype), " for ", what, " '",
                                  port.name, "' for model '", model, "'"));
  }
  if (port.datatype == TRITONSERVER_TYPE_BYTES && port.dims.size() + (is_batching ? 1 : 0) > 1) {
    return Error::Internal(StrCat("Triton only supports 1 dimensional List of String as ", what,
                                  " for '", port.name, "' for model '", model, "'"));
  }
  return {};
}

void AppendNames(const ValueType& type, const Path& path, std::vector<std::string>* names) {
  const ValueType& required = type.Required();
  if (required.is_leaf()) {
    names->push_back(StrCat("{ name: \"", ToString(path), "\" data_type: ",
                            required.is_text() ? "TYPE_STRING" : "TYPE_...", " dims: [ ",
                            required.kind == ValueType::Kind::kTensor ? "..." : "-1", " ] }"));
    return;
  }
  for (size_t i = 0; i < required.elements.size(); ++i) {
    Path child = path;
    child.push_back(required.kind == ValueType::Kind::kDict   ? "key"
                    : required.kind == ValueType::Kind::kList ? "0"
                    : i < required.fields.size()              ? required.fields[i]
                                                              : std::to_string(i));
    AppendNames(required.elements[i], child, names);
  }
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

Error CheckKinds(const Ports& ports, const ValueNode& node) {
  if (node.input >= 0) {
    const InputPort& port = ports.inputs[static_cast<size_t>(node.input)];
    if ((port.datatype == TRITONSERVER_TYPE_BYTES) != node.type->Required().is_text()) {
      return Error::InvalidArgument(StrCat(
          "configuration expects datatype TYPE_",
          port.datatype == TRITONSERVER_TYPE_BYTES ? "STRING"
                                                   : TRITONSERVER_DataTypeString(port.datatype),
          " for input '", port.name, "', model provides ", node.type->text));
    }
  }
  for (const ValueNode& child : node.children) {
    NEREID_KIT_TRY(CheckKinds(ports, child));
  }
  return {};
}

}  // namespace

Error CheckPorts(const Ports& ports, bool is_batching, const std::string& model) {
  for (const InputPort& input : ports.inputs) {
    if (input.origin == InputPort::Origin::kControl) {
      continue;  // the server has checked those
    }
    NEREID_KIT_TRY(CheckPort(input,
                             input.origin == InputPort::Origin::kState ? "input state" : "input",
                             is_batching, model));
  }
  for (const OutputPort& output : ports.outputs) {
    NEREID_KIT_TRY(CheckPort(output, "output", is_batching, model));
  }
  return {};
}

Error CheckInputsListed(const Ports& ports, const Signature& signature, const std::string& model) {
  if (std::any_of(ports.inputs.begin(), ports.inputs.end(), [](const InputPort& input) {
        return input.origin == InputPort::Origin::kInput;
      })) {
    return {};
  }
  std::vector<std::string> names;
  for (const Argument& argument : signature.arguments) {
    AppendNames(argument.type, {argument.name}, &names);
  }
  return Error::InvalidArgument(
      StrCat("unable to load model '", model, "', configuration expects 0 inputs, model provides ",
             names.size(),
             ": TorchScript files have no types and shapes, so config.pbtxt has to say them: ",
             signature.ToString(), " is input [ ", Join(names), " ]; outputs may be left out"));
}

Error CheckKinds(const Ports& ports, const std::vector<ValueNode>& arguments) {
  for (const ValueNode& argument : arguments) {
    NEREID_KIT_TRY(CheckKinds(ports, argument));
  }
  return {};
}

std::vector<InputName> InputNames(const Ports& ports) {
  std::vector<InputName> names;
  for (const InputPort& input : ports.inputs) {
    using Origin = InputPort::Origin;
    names.push_back(
        {.name = input.name,
         .is_listed = input.origin == Origin::kInput || input.origin == Origin::kBatchInput,
         .what = input.origin == Origin::kState ? "state" : "input"});
  }
  return names;
}

}  // namespace nereid::pytorch
