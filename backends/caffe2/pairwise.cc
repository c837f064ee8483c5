// SPDX-License-Identifier: Apache-2.0
// Translations of operators that compute each element of the result from those at its place in
// several tensors.
#include <algorithm>

#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

Error PRelu(Scope& s) {
  std::string slope = s.In(1).name;
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  const auto& dims = s.In(1).dims;
  const bool is_one = dims && dims->size() == 1 && dims->front() == 1;
  if (!is_one && !IsChannelsLast(s) && rank > 2) {
    std::vector<int64_t> axes;
    for (int64_t d = 1; d < rank - 1; ++d) {
      axes.push_back(d);
    }
    slope = s.Node("Unsqueeze", {slope}, {{"axes", axes}});
  }
  s.Return(s.Node("PRelu", {s.In(0).name, slope}), s.In(0).type, s.In(0).dims);
  return {};
}

// A gradient that Caffe2 lists among what ONNX has: dY where Y is positive, alpha dY elsewhere.
Error LeakyReluGradient(Scope& s) {
  const std::string positive = s.Node("Greater", {s.In(0).name, s.Scalar(0.0F)});
  const std::string less = s.Node("Mul", {s.In(1).name, s.Scalar(s.Real("alpha", 0.01F))});
  s.Return(s.Node("Where", {positive, s.In(1).name, less}), s.In(1).type, s.In(1).dims);
  return {};
}

Error Pow(Scope& s) {
  const Value& x = s.In(0);
  const bool has_argument = s.inputs() < 2;
  const std::string exponent =
      has_argument ? s.Scalar(s.Real("exponent", 0.0F), x.type) : s.In(1).name;
  s.Return(s.Node("Pow", {x.name, exponent}), x.type,
           has_argument ? x.dims : Broadcast(x.dims, s.In(1).dims));
  return {};
}

// A second operand, reshaped as the arguments `broadcast` and `axis` of old networks say: its
// dimensions are those of the first operand that begin at `axis`.
struct Operand {
  std::string name;
  std::optional<Dims> dims;
};

backend::Result<Operand> SecondOperand(Scope& s) {
  const Value& b = s.In(1);
  Operand operand{.name = b.name, .dims = b.dims};
  int64_t axis = s.Int("axis", -1);
  if (const std::string_view letter = s.Text("axis_str", ""); !letter.empty()) {
    const size_t found = s.Text("order", "NCHW").find(letter);
    if (found == std::string_view::npos) {
      return s.Refuse("has the unknown axis_str '", letter, "'");
    }
    axis = static_cast<int64_t>(found);
  }
  if (!s.Flag("broadcast", false)) {
    return operand;
  }
  NEREID_KIT_ASSIGN(const int64_t rank_a, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t rank_b, s.Rank(1));
  const bool is_one = std::all_of(b.dims->begin(), b.dims->end(), [](int64_t d) { return d == 1; });
  if (is_one && rank_b > rank_a) {
    operand = {.name = s.Node("Reshape", {b.name, s.Vector({})}), .dims = Dims()};
    return operand;
  }
  if (axis < 0 || is_one) {
    return operand;
  }
  const int64_t behind = rank_a - axis - rank_b;
  if (behind < 0) {
    return s.Refuse("has axis ", axis, " for operands of ", rank_a, " and ", rank_b, " dimensions");
  }
  if (behind > 0) {
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < behind; ++d) {
      axes.push_back(rank_b + d);
      operand.dims->push_back(1);
    }
    operand.name = s.Node("Unsqueeze", {operand.name}, {{"axes", axes}});
  }
  return operand;
}

Error Binary(Scope& s) {
  NEREID_KIT_ASSIGN(const Operand b, SecondOperand(s));
  s.Return(s.Node(s.target(), {s.In(0).name, b.name}), s.In(0).type,
           Broadcast(s.In(0).dims, b.dims));
  return {};
}

Error Comparison(Scope& s) {
  NEREID_KIT_ASSIGN(const Operand b, SecondOperand(s));
  std::string result;
  if (s.type() == "NE") {
    result = s.Node("Not", {s.Node("Equal", {s.In(0).name, b.name})});
  } else {
    result = s.Node(s.target(), {s.In(0).name, b.name});
  }
  s.Return(result, Element::kBool, Broadcast(s.In(0).dims, b.dims));
  return {};
}

// Sum, Max, Min and Mean of any number of tensors of one shape.
Error Several(Scope& s) {
  std::string result = s.In(0).name;
  std::optional<Dims> dims = s.In(0).dims;
  for (size_t i = 1; i < s.inputs(); ++i) {
    result = s.Node(s.target(), {result, s.In(i).name});
    dims = dims ? dims : s.In(i).dims;
  }
  if (s.type() == "Mean") {
    result = s.Node("Div", {result, s.Scalar(static_cast<double>(s.inputs()), s.In(0).type)});
  }
  s.Return(result, s.In(0).type, dims);
  return {};
}

// ONNX Runtime chooses between numbers and texts, but not between booleans.
std::string Choose(Scope& s, const std::string& condition, const Value& yes, const Value& no) {
  const bool is_bool = yes.type == Element::kBool;
  const auto number = [&](const Value& value) {
    return is_bool ? s.Cast(value.name, Element::kBool, Element::kUint8) : value.name;
  };
  const std::string chosen = s.Node("Where", {condition, number(yes), number(no)});
  return is_bool ? s.Cast(chosen, Element::kUint8, Element::kBool) : chosen;
}

// Where chooses elements, Conditional rows, and Where with broadcast_on_rows rows as well.
Error Where(Scope& s) {
  std::string condition = s.In(0).name;
  if (s.type() == "Conditional" || s.Flag("broadcast_on_rows", false)) {
    NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(1));
    std::vector<int64_t> axes;
    for (int64_t d = 1; d < rank; ++d) {
      axes.push_back(d);
    }
    if (!axes.empty()) {
      condition = s.Node("Unsqueeze", {condition}, {{"axes", axes}});
    }
  }
  s.Return(Choose(s, condition, s.In(1), s.In(2)), s.In(1).type,
           Broadcast(s.In(1).dims, s.In(2).dims));
  return {};
}

constexpr Translation kTable[] = {
    {"LeakyReluGradient", 2, 2, LeakyReluGradient},
    {"Pow", 1, 2, Pow},
    {"PRelu", 2, 2, PRelu},
    {"Add", 2, 2, Binary, "Add"},
    {"And", 2, 2, Binary, "And"},
    {"Div", 2, 2, Binary, "Div"},
    {"Mul", 2, 2, Binary, "Mul"},
    {"Or", 2, 2, Binary, "Or"},
    {"Sub", 2, 2, Binary, "Sub"},
    {"Xor", 2, 2, Binary, "Xor"},
    {"EQ", 2, 2, Comparison, "Equal"},
    {"GE", 2, 2, Comparison, "GreaterOrEqual"},
    {"GT", 2, 2, Comparison, "Greater"},
    {"LE", 2, 2, Comparison, "LessOrEqual"},
    {"LT", 2, 2, Comparison, "Less"},
    {"NE", 2, 2, Comparison},
    {"Max", 1, kAny, Several, "Max"},
    {"Mean", 1, kAny, Several, "Add"},
    {"Min", 1, kAny, Several, "Min"},
    {"Sum", 1, kAny, Several, "Add"},
    {"Conditional", 3, 3, Where},
    {"Where", 3, 3, Where},
};

}  // namespace

std::span<const Translation> PairwiseTranslations() { return kTable; }

}  // namespace nereid::caffe2
