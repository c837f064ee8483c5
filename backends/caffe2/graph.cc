// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/graph.h"

#include "caffe2_backend/wire.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// The field numbers of onnx.proto.
namespace model_field {
constexpr uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOperators = 8;
}
namespace operators_field {
constexpr uint32_t kDomain = 1, kVersion = 2;
}
namespace graph_field {
constexpr uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node_field {
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kType = 4, kAttribute = 5, kDomain = 7;
}
namespace attribute_field {
constexpr uint32_t kName = 1, kReal = 2, kInteger = 3, kText = 4, kIntegers = 8, kKind = 20;
// Values of kKind.
constexpr int64_t kIsReal = 1, kIsInteger = 2, kIsText = 3, kIsIntegers = 7;
}  // namespace attribute_field
namespace tensor_field {
constexpr uint32_t kDims = 1, kType = 2, kTexts = 6, kName = 8, kRaw = 9;
}
namespace port_field {
constexpr uint32_t kName = 1, kType = 2;
// Numbers of the fields of TypeProto, TypeProto.Tensor, TensorShapeProto and Dimension.
constexpr uint32_t kTensor = 1, kElement = 1, kShape = 2, kDim = 1, kSize = 1;
}  // namespace port_field

// Protobuf's limit for a message.
constexpr uint64_t kMaxBytes = (uint64_t{2} << 30) - (uint64_t{1} << 20);

void Write(const Attribute& attribute, WireWriter& node) {
  WireWriter message;
  message.Bytes(attribute_field::kName, attribute.name);
  if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
    message.Number(attribute_field::kInteger, *integer);
    message.Number(attribute_field::kKind, attribute_field::kIsInteger);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    message.Float(attribute_field::kReal, *real);
    message.Number(attribute_field::kKind, attribute_field::kIsReal);
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    message.Bytes(attribute_field::kText, *text);
    message.Number(attribute_field::kKind, attribute_field::kIsText);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    for (const int64_t value : *integers) {
      message.Number(attribute_field::kIntegers, value);
    }
    message.Number(attribute_field::kKind, attribute_field::kIsIntegers);
  }
  node.Bytes(node_field::kAttribute, message.bytes());
}

void Write(const std::string& name, const Constant& constant, WireWriter& graph) {
  WireWriter head;
  for (const int64_t dim : constant.dims) {
    head.Number(tensor_field::kDims, dim);
  }
  head.Number(tensor_field::kType, static_cast<int64_t>(constant.type));
  head.Bytes(tensor_field::kName, name);
  for (const std::string& text : constant.texts) {
    head.Bytes(tensor_field::kTexts, text);
  }
  if (constant.type == Element::kString) {
    graph.Bytes(graph_field::kInitializer, head.bytes());
    return;
  }
  // The elements may be gigabytes, so they are not copied into a message of their own first.
  head.Header(tensor_field::kRaw, constant.bytes.size());
  graph.Header(graph_field::kInitializer, head.bytes().size() + constant.bytes.size());
  graph.Append(head.bytes());
  graph.Append(constant.bytes);
}

std::string PortMessage(const std::string& name, Element type, const std::optional<Dims>& dims) {
  WireWriter tensor;
  tensor.Number(port_field::kElement, static_cast<int64_t>(type));
  if (dims) {
    WireWriter shape;
    for (const int64_t size : *dims) {
      WireWriter dim;
      if (size >= 0) {
        dim.Number(port_field::kSize, size);
      }
      shape.Bytes(port_field::kDim, dim.bytes());
    }
    tensor.Bytes(port_field::kShape, shape.bytes());
  }
  WireWriter kind;
  kind.Bytes(port_field::kTensor, tensor.bytes());
  WireWriter port;
  port.Bytes(port_field::kName, name);
  port.Bytes(port_field::kType, kind.bytes());
  return port.Take();
}

}  // namespace

std::string Graph::NewName() {
  std::string name;
  do {
    name = StrCat("t", names_++);
  } while (taken_.contains(name));
  return name;
}

std::string Graph::Add(Constant constant) {
  std::string name = NewName();
  constants_.emplace(name, std::move(constant));
  return name;
}

const Constant* Graph::FindConstant(const std::string& name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

std::vector<std::string> Graph::AddNode(std::string_view type, std::vector<std::string> inputs,
                                        Attributes attributes, size_t outputs,
                                        std::string_view domain) {
  std::vector<std::string> names;
  for (size_t o = 0; o < outputs; ++o) {
    names.push_back(NewName());
  }
  read_.insert(inputs.begin(), inputs.end());
  made_.insert(names.begin(), names.end());
  nodes_.push_back({.label = StrCat(label_, " (", names.front(), ")"),
                    .type = type,
                    .domain = domain,
                    .inputs = std::move(inputs),
                    .outputs = names,
                    .attributes = std::move(attributes)});
  return names;
}

void Graph::AddInput(const std::string& name, Element type, const Dims& dims) {
  inputs_.push_back({.name = name, .type = type, .dims = dims});
}

void Graph::AddOutput(const std::string& name, const std::string& value, Element type,
                      const std::optional<Dims>& dims) {
  // Names that a node made are replaced by the output's; anything else needs a node.
  const std::string source = made_.contains(value) && !renamed_.contains(value)
                                 ? value
                                 : AddNode("Identity", {value}, {}, 1).front();
  renamed_.emplace(source, name);
  outputs_.push_back({.name = name, .type = type, .dims = dims});
}

const std::string& Graph::FinalName(const std::string& value) const {
  const auto found = renamed_.find(value);
  return found == renamed_.end() ? value : found->second;
}

Result<std::string> Graph::Serialize() {
  WireWriter graph;
  graph.Bytes(graph_field::kName, "netdef");
  for (auto& [name, constant] : constants_) {
    if (!read_.contains(name)) {
      continue;
    }
    if (graph.bytes().size() + constant.bytes.size() > kMaxBytes) {
      return Error::InvalidArgument("its weights take more than 2 GB, which is not supported");
    }
    Write(name, constant, graph);
    constant = {};
  }
  for (const Node& node : nodes_) {
    WireWriter message;
    for (const std::string& input : node.inputs) {
      message.Bytes(node_field::kInput, FinalName(input));
    }
    for (const std::string& output : node.outputs) {
      message.Bytes(node_field::kOutput, FinalName(output));
    }
    message.Bytes(node_field::kName, node.label);
    message.Bytes(node_field::kType, node.type);
    for (const Attribute& attribute : node.attributes) {
      Write(attribute, message);
    }
    if (!node.domain.empty()) {
      message.Bytes(node_field::kDomain, node.domain);
    }
    graph.Bytes(graph_field::kNode, message.bytes());
  }
  for (const Port& input : inputs_) {
    graph.Bytes(graph_field::kInput, PortMessage(input.name, input.type, input.dims));
  }
  for (const Port& output : outputs_) {
    graph.Bytes(graph_field::kOutput, PortMessage(output.name, output.type, output.dims));
  }
  WireWriter model;
  constexpr int64_t kIrVersion = 7;
  model.Number(model_field::kIrVersion, kIrVersion);
  model.Bytes(model_field::kProducer, "Caffe2");
  for (const auto& [domain, version] :
       {std::pair{std::string_view(), kOperatorsVersion}, std::pair{kOwnDomain, int64_t{1}}}) {
    WireWriter operators;
    operators.Bytes(operators_field::kDomain, domain);
    operators.Number(operators_field::kVersion, version);
    model.Bytes(model_field::kOperators, operators.bytes());
  }
  if (graph.bytes().size() > kMaxBytes) {
    return Error::InvalidArgument("it takes more than 2 GB, which is not supported");
  }
  model.Header(model_field::kGraph, graph.bytes().size());
  std::string bytes = graph.Take();
  bytes.insert(0, model.bytes());
  *this = Graph({});
  return bytes;
}

}  // namespace nereid::caffe2
