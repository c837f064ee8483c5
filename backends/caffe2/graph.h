// SPDX-License-Identifier: Apache-2.0
// An ONNX graph that is being made: nodes, constants, inputs and outputs, and its serialised form.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "backend_kit/error.h"
#include "caffe2_backend/constant.h"

namespace nereid::caffe2 {

// An attribute of a node. Immutable.
struct Attribute {
  std::string_view name;  // a literal
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};
using Attributes = std::vector<Attribute>;

// An ONNX graph. Thread-compatible.
class Graph {
 public:
  // The version of ONNX's operators. In this one Softmax flattens its input as Caffe2's does, and
  // axes are attributes.
  static constexpr int64_t kOperatorsVersion = 12;
  // The domain of the operators in kernels.h.
  static constexpr std::string_view kOwnDomain = "caffe2";

  // `taken` are names that tensors of the graph's own must not have: those of inputs and outputs.
  explicit Graph(std::unordered_set<std::string> taken) : taken_(std::move(taken)) {}

  // Sets the text that names of the following nodes begin with, for ONNX Runtime's errors.
  void SetLabel(std::string label) { label_ = std::move(label); }
  // Adds a tensor and returns its name; it is in the serialised graph only if a node reads it.
  std::string Add(Constant constant);
  // Returns the constant called `name`, or null. Valid until Serialize.
  const Constant* FindConstant(const std::string& name) const;

  // Adds a node with `outputs` outputs and returns their new names.
  std::vector<std::string> AddNode(std::string_view type, std::vector<std::string> inputs,
                                   Attributes attributes, size_t outputs,
                                   std::string_view domain = {});
  // Declares an input called `name`.
  void AddInput(const std::string& name, Element type, const Dims& dims);
  // Declares that the tensor `value` is the output called `name`. A tensor may be several outputs.
  void AddOutput(const std::string& name, const std::string& value, Element type,
                 const std::optional<Dims>& dims);

  // Returns the ModelProto. The graph is empty afterwards. Fails if it were too large for
  // protobuf.
  backend::Result<std::string> Serialize();

 private:
  struct Node {
    std::string label;
    std::string_view type;
    std::string_view domain;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    Attributes attributes;
  };
  struct Port {
    std::string name;
    Element type;
    std::optional<Dims> dims;
  };

  std::string NewName();
  // Returns the name that `value` has in the serialised graph.
  const std::string& FinalName(const std::string& value) const;

  std::unordered_set<std::string> taken_;
  std::string label_;
  std::deque<Node> nodes_;
  std::map<std::string, Constant> constants_;
  std::unordered_set<std::string> read_;                  // names that nodes read
  std::unordered_set<std::string> made_;                  // names that nodes write
  std::unordered_map<std::string, std::string> renamed_;  // outputs of nodes that are outputs
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  size_t names_ = 0;
};

}  // namespace nereid::caffe2
