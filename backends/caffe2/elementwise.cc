// SPDX-License-Identifier: Apache-2.0
// Translations of operators that compute each element of the result from the one at its place.
#include <algorithm>
#include <limits>

#include "caffe2_backend/tables.h"

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

Error Dropout(Scope& s) {
  if (!s.Flag("is_test", false)) {
    return s.Refuse(
        "drops elements at random, because is_test is not 1: export the network for "
        "inference");
  }
  return Same(s);
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
    {"Logit", 1, 1, Logit},
    {"Mod", 1, 1, Mod},
    {"Rsqrt", 1, 1, Rsqrt},
    {"Scale", 1, 1, Scale},
    {"Selu", 1, 1, Selu},
    {"Sqr", 1, 1, Sqr},
    {"Swish", 1, 1, Swish},
    {"Cast", 1, 1, Cast},
    {"FloatToHalf", 1, 1, CastTo<Element::kHalf>},
    {"HalfToFloat", 1, 1, CastTo<Element::kFloat>},
};

}  // namespace

std::span<const Translation> ElementwiseTranslations() { return kTable; }

}  // namespace nereid::caffe2
