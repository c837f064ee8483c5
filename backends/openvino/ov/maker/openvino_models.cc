// SPDX-License-Identifier: Apache-2.0
// Makes models for tests. Each line of the standard input makes one: PATH.xml KIND TYPE DIMS, where
// DIMS is like 2x?x3 ("?": variable, "scalar": none). Kinds:
//
//   echo        y = x
//   add_sub     sum = a + b, difference = a - b
//   share       y = x divided by the sum of the first column of all rows: rows depend on each other
//   positive    y = positions of the elements that are not zero: its shape is known after the run
//   flat        y = x in one row, also where x has several
//   as_made     y = x in the shape DIMS, which must be fixed
//   accumulate  y = x + all x before, in a variable inside the model
//   state       y = next = start > 0 ? x : state + x
//   offsets     y = x + the sum of offsets
//   weights     y = x times 1024x1024 weights
// A kind that begins with "N:" has layouts that call the first dimensions the batch.
#include <openvino/core/model.hpp>
#include <openvino/op/ops.hpp>
#include <openvino/openvino.hpp>

#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>

namespace {

using ov::element::Type;
using Node = ov::Output<ov::Node>;
template <typename Op>
constexpr auto kMake = [](auto&&... arguments) {
  return std::make_shared<Op>(std::forward<decltype(arguments)>(arguments)...);
};

ov::PartialShape ParseDims(const std::string& text) {
  std::vector<ov::Dimension> dims;
  std::istringstream in(text == "scalar" ? "" : text);
  for (std::string dim; std::getline(in, dim, 'x');) {
    dims.push_back(dim == "?" ? ov::Dimension() : ov::Dimension(std::atoll(dim.c_str())));
  }
  return ov::PartialShape(dims);
}

// A model in the making.
class Maker {
 public:
  Node Input(const std::string& name, const Type& type, const ov::PartialShape& shape) {
    auto input = kMake<ov::op::v0::Parameter>(type, shape);
    input->set_friendly_name(name);
    input->output(0).set_names({name});
    inputs_.push_back(input);
    return input;
  }
  void Output(const std::string& name, const Node& value) {
    value.get_node_shared_ptr()->output(value.get_index()).add_names({name});
    outputs_.push_back(kMake<ov::op::v0::Result>(value));
  }
  void Sink(const std::shared_ptr<ov::op::Sink>& sink) { sinks_.push_back(sink); }
  void NameBatch() {
    for (const auto& input : inputs_) {
      input->set_layout("N...");
    }
    for (const auto& output : outputs_) {
      output->set_layout("N...");
    }
  }
  void Write(const std::string& path) {
    ov::serialize(std::make_shared<ov::Model>(outputs_, sinks_, inputs_), path);
  }

 private:
  ov::ParameterVector inputs_;
  ov::ResultVector outputs_;
  ov::SinkVector sinks_;
};

Node Scalar(const Type& type, double value) {
  return ov::op::v0::Constant::create(type, {}, {value});
}
Node Indices(const std::vector<int64_t>& values) {
  return ov::op::v0::Constant::create(ov::element::i64, {values.size()}, values);
}

void Echo(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const Node x = m.Input("x", type, shape);
  // No operation takes strings.
  m.Output("y", type == ov::element::string ? x : Node(kMake<ov::op::v0::Convert>(x, type)));
}

void AddSub(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const Node a = m.Input("a", type, shape);
  const Node b = m.Input("b", type, shape);
  if (type == ov::element::boolean) {
    m.Output("sum", kMake<ov::op::v1::LogicalOr>(a, b));
    m.Output("difference", kMake<ov::op::v1::LogicalXor>(a, b));
  } else {
    m.Output("sum", kMake<ov::op::v1::Add>(a, b));
    m.Output("difference", kMake<ov::op::v1::Subtract>(a, b));
  }
}

void Share(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const Node x = m.Input("x", type, shape);
  const Node sum = kMake<ov::op::v1::ReduceSum>(x, Indices({0}), true);
  m.Output("y", kMake<ov::op::v1::Divide>(x, sum));
}

void Positive(Maker& m, const Type& type, const ov::PartialShape& shape) {
  m.Output("y", kMake<ov::op::v3::NonZero>(m.Input("x", type, shape), ov::element::i64));
}

void Flat(Maker& m, const Type& type, const ov::PartialShape& shape) {
  m.Output("y", kMake<ov::op::v1::Reshape>(m.Input("x", type, shape), Indices({1, -1}), false));
}

void AsMade(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const ov::Shape made = shape.to_shape();
  const Node dims = Indices(std::vector<int64_t>(made.begin(), made.end()));
  m.Output("y", kMake<ov::op::v1::Reshape>(m.Input("x", type, shape), dims, false));
}

void Accumulate(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const Node x = m.Input("x", type, shape);
  auto variable =
      std::make_shared<ov::op::util::Variable>(ov::op::util::VariableInfo{shape, type, "total"});
  const Node zero = ov::op::v0::Constant::create(type, shape.to_shape(), {0});
  const Node before = kMake<ov::op::v6::ReadValue>(zero, variable);
  const Node after = kMake<ov::op::v1::Add>(x, before);
  m.Sink(kMake<ov::op::v6::Assign>(after, variable));
  m.Output("y", after);
}

void State(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const Node x = m.Input("x", type, shape);
  const Node start = m.Input("start", type, shape);
  const Node state = m.Input("state", type, shape);
  const Node begins = kMake<ov::op::v1::Greater>(start, Scalar(type, 0));
  const Node next = kMake<ov::op::v1::Select>(begins, x, kMake<ov::op::v1::Add>(x, state));
  m.Output("y", kMake<ov::op::v1::Add>(next, Scalar(type, 0)));
  m.Output("next", next);
}

void Offsets(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const Node x = m.Input("x", type, shape);
  const Node offsets = m.Input("offsets", ov::element::i32, ov::PartialShape{-1});
  const Node sum = kMake<ov::op::v1::ReduceSum>(offsets, Indices({0}), true);
  m.Output("y", kMake<ov::op::v1::Add>(x, kMake<ov::op::v0::Convert>(sum, type)));
}

void Weights(Maker& m, const Type& type, const ov::PartialShape& shape) {
  const Node weights =
      ov::op::v0::Constant::create(type, {1024, 1024}, std::vector<float>(1024 * 1024, 0.5F));
  m.Output("y", kMake<ov::op::v0::MatMul>(m.Input("x", type, shape), weights));
}

const std::map<std::string, void (*)(Maker&, const Type&, const ov::PartialShape&)> kKinds = {
    {"echo", Echo},         {"add_sub", AddSub},  {"share", Share},
    {"positive", Positive}, {"flat", Flat},       {"state", State},
    {"offsets", Offsets},   {"weights", Weights}, {"accumulate", Accumulate},
    {"as_made", AsMade}};

}  // namespace

int main() {
  std::string path;
  std::string kind;
  std::string type;
  std::string dims;
  while (std::cin >> path >> kind >> type >> dims) {
    try {
      Maker maker;
      const bool names_batch = kind.starts_with("N:");
      kKinds.at(kind.substr(names_batch ? 2 : 0))(maker, Type(type), ParseDims(dims));
      if (names_batch) maker.NameBatch();
      maker.Write(path);
    } catch (const std::exception& e) {
      std::cerr << path << ' ' << kind << ' ' << type << ' ' << dims << ": " << e.what() << '\n';
      return 1;
    }
  }
  return 0;
}
