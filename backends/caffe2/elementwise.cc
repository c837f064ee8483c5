// SPDX-License-Identifier: Apache-2.0
// Translations of operators that compute each element of the result from the elements at its place.
#include <algorithm>
#include <limits>

#include "caffe2_backend/scope.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

Error Same(Scope& s) {
  s.Set(0, s.In(0));
  return {};
}

Error Unary(Scope& s) {
  s.Return(s.Node(s.target(), {s.In(0).name}), s.In(0).type, s.In(0).dims);
  return {};
}

// Operators with the argument alpha.
template <int kThousandths>
Error WithAlpha(Scope& s) {
  const float alpha = s.Real("alpha", static_cast<float>(kThousandths) / 1000);
  s.Return(s.Node(s.target(), {s.In(0).name}, {{"alpha", alpha}}), s.In(0).type, s.In(0).dims);
  return {};
}

Error Selu(Scope& s) {
  const Attributes attributes{{"alpha", s.Real("alpha", 1.6732632423543772848170429916717F)},
                              {"gamma", s.Real("scale", 1.0507009873554804934193349852946F)}};
  s.Return(s.Node("Selu", {s.In(0).name}, attributes), s.In(0).type, s.In(0).dims);
  return {};
}

Error HardSigmoid(Scope& s) {
  const Attributes attributes{{"alpha", s.Real("alpha", 0.2F)}, {"beta", s.Real("beta", 0.5F)}};
  s.Return(s.Node("HardSigmoid", {s.In(0).name}, attributes), s.In(0).type, s.In(0).dims);
  return {};
}

Error Clip(Scope& s) {
  const std::string low = s.Scalar(s.Real("min", std::numeric_limits<float>::lowest()));
  const std::string high = s.Scalar(s.Real("max", std::numeric_limits<float>::max()));
  s.Return(s.Node("Clip", {s.In(0).name, low, high}), s.In(0).type, s.In(0).dims);
  return {};
}

Error Power(Scope& s, int exponent) {
  std::string value = s.In(0).name;
  for (int i = 1; i < exponent; ++i) {
    value = s.Node("Mul", {value, s.In(0).name});
  }
  s.Return(value, s.In(0).type, s.In(0).dims);
  return {};
}

Error Sqr(Scope& s) { return Power(s, 2); }

Error Cube(Scope& s) { return Power(s, 3); }

Error Rsqrt(Scope& s) {
  s.Return(s.Node("Reciprocal", {s.Node("Sqrt", {s.In(0).name})}), s.In(0).type, s.In(0).dims);
  return {};
}

Error Swish(Scope& s) {
  const std::string& x = s.In(0).name;
  s.Return(s.Node("Mul", {x, s.Node("Sigmoid", {x})}), s.In(0).type, s.In(0).dims);
  return {};
}

Error Logit(Scope& s) {
  const float eps = s.Real("eps", 1e-6F);
  const std::string x = s.Node("Clip", {s.In(0).name, s.Scalar(eps), s.Scalar(1.0F - eps)});
  const std::string rest = s.Node("Sub", {s.Scalar(1.0F), x});
  s.Return(s.Node("Log", {s.Node("Div", {x, rest})}), s.In(0).type, s.In(0).dims);
  return {};
}

Error Scale(Scope& s) {
  const std::string scale = s.Scalar(s.Real("scale", 1.0F), s.In(0).type);
  s.Return(s.Node("Mul", {s.In(0).name, scale}), s.In(0).type, s.In(0).dims);
  return {};
}

Error Gelu(Scope& s) {
  if (s.Flag("fast_gelu", false)) {
    return s.Refuse("has no translation to ONNX with fast_gelu");
  }
  constexpr float kSqrtHalf = 0.70710678118654752440F;
  const std::string& x = s.In(0).name;
  const std::string erf = s.Node("Erf", {s.Node("Mul", {x, s.Scalar(kSqrtHalf)})});
  const std::string half = s.Node("Mul", {x, s.Scalar(0.5F)});
  s.Return(s.Node("Mul", {half, s.Node("Add", {erf, s.Scalar(1.0F)})}), s.In(0).type, s.In(0).dims);
  return {};
}

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

Error Dropout(Scope& s) {
  if (!s.Flag("is_test", false)) {
    return s.Refuse(
        "drops elements at random, because is_test is not 1: export the network for "
        "inference");
  }
  return Same(s);
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

Error Mod(Scope& s) {
  const int64_t divisor = s.Int("divisor", 0);
  if (divisor == 0) {
    return s.Refuse("divides by 0");
  }
  // ONNX's fmod 0 takes the sign of the divisor, 1 that of the dividend.
  const int64_t of_dividend = s.Flag("sign_follow_divisor", false) ? 0 : 1;
  const std::string by = s.Scalar(static_cast<double>(divisor), s.In(0).type);
  s.Return(s.Node("Mod", {s.In(0).name, by}, {{"fmod", of_dividend}}), s.In(0).type, s.In(0).dims);
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

Error Cast(Scope& s) {
  constexpr std::pair<std::string_view, Element> kNames[] = {
      {"FLOAT", Element::kFloat},   {"INT32", Element::kInt32},   {"BYTE", Element::kUint8},
      {"STRING", Element::kString}, {"BOOL", Element::kBool},     {"UINT8", Element::kUint8},
      {"INT8", Element::kInt8},     {"UINT16", Element::kUint16}, {"INT16", Element::kInt16},
      {"INT64", Element::kInt64},   {"FLOAT16", Element::kHalf},  {"DOUBLE", Element::kDouble}};
  std::optional<Element> to;
  std::string text(s.Text("to", ""));
  if (text.empty()) {
    to = FromDataType(s.Int("to", 1));
  } else {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    for (const auto& [name, type] : kNames) {
      to = name == text ? type : to;
    }
  }
  if (!to || *to == Element::kString || s.In(0).type == Element::kString) {
    return s.Refuse("casts to or from a type for which there is no translation to ONNX");
  }
  s.Return(s.Cast(s.In(0).name, s.In(0).type, *to), *to, s.In(0).dims);
  return {};
}

template <Element kTo>
Error CastTo(Scope& s) {
  s.Return(s.Cast(s.In(0).name, s.In(0).type, kTo), kTo, s.In(0).dims);
  return {};
}

Error IsNan(Scope& s) {
  const std::string result = s.Node("IsNaN", {s.In(0).name});
  s.Return(s.Cast(result, Element::kBool, Element::kUint8), Element::kUint8, s.In(0).dims);
  return {};
}

constexpr Translation kTable[] = {
    {"Alias", 1, 1, Same},
    {"Copy", 1, 1, Same},
    {"CopyCPUToGPU", 1, 1, Same},
    {"CopyFromCPUInput", 1, 1, Same},
    {"CopyGPUToCPU", 1, 1, Same},
    {"EnsureCPUOutput", 1, 1, Same},
    {"EnsureDense", 1, 1, Same},
    {"StopGradient", 1, 1, Same},
    {"Dropout", 1, 1, Dropout},
    {"Abs", 1, 1, Unary, "Abs"},
    {"Acos", 1, 1, Unary, "Acos"},
    {"Asin", 1, 1, Unary, "Asin"},
    {"Atan", 1, 1, Unary, "Atan"},
    {"Ceil", 1, 1, Unary, "Ceil"},
    {"Cos", 1, 1, Unary, "Cos"},
    {"Cosh", 1, 1, Unary, "Cosh"},
    {"Erf", 1, 1, Unary, "Erf"},
    {"Exp", 1, 1, Unary, "Exp"},
    {"Floor", 1, 1, Unary, "Floor"},
    {"Log", 1, 1, Unary, "Log"},
    {"Negative", 1, 1, Unary, "Neg"},
    {"Not", 1, 1, Unary, "Not"},
    {"Reciprocal", 1, 1, Unary, "Reciprocal"},
    {"Relu", 1, 1, Unary, "Relu"},
    {"Sigmoid", 1, 1, Unary, "Sigmoid"},
    {"Sign", 1, 1, Unary, "Sign"},
    {"Sin", 1, 1, Unary, "Sin"},
    {"Sinh", 1, 1, Unary, "Sinh"},
    {"Softplus", 1, 1, Unary, "Softplus"},
    {"Softsign", 1, 1, Unary, "Softsign"},
    {"Sqrt", 1, 1, Unary, "Sqrt"},
    {"Tan", 1, 1, Unary, "Tan"},
    {"Tanh", 1, 1, Unary, "Tanh"},
    {"Clip", 1, 1, Clip},
    {"Cube", 1, 1, Cube},
    {"Elu", 1, 1, WithAlpha<1000>, "Elu"},
    {"Gelu", 1, 1, Gelu},
    {"HardSigmoid", 1, 1, HardSigmoid},
    {"IsNaN", 1, 1, IsNan},
    {"LeakyRelu", 1, 1, WithAlpha<10>, "LeakyRelu"},
    {"LeakyReluGradient", 2, 2, LeakyReluGradient},
    {"Logit", 1, 1, Logit},
    {"Mod", 1, 1, Mod},
    {"Pow", 1, 2, Pow},
    {"PRelu", 2, 2, PRelu},
    {"Rsqrt", 1, 1, Rsqrt},
    {"Scale", 1, 1, Scale},
    {"Selu", 1, 1, Selu},
    {"Sqr", 1, 1, Sqr},
    {"Swish", 1, 1, Swish},
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
    {"Cast", 1, 1, Cast},
    {"FloatToHalf", 1, 1, CastTo<Element::kHalf>},
    {"HalfToFloat", 1, 1, CastTo<Element::kFloat>},
};

}  // namespace

std::span<const Translation> ElementwiseTranslations() { return kTable; }

}  // namespace nereid::caffe2
