// SPDX-License-Identifier: Apache-2.0
// Translations of Int8 operators, whose tensors are bytes with a scale and a zero point. Scale and
// zero point are arguments, so they are known when the model is loaded.
#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;

namespace {

Quantization OfResult(const Scope& s) {
  return {.scale = s.Real("Y_scale", 1.0F), .zero_point = s.Int("Y_zero_point", 0)};
}

Result<Quantization> OfInput(const Scope& s, size_t i) {
  const Value& value = s.In(i);
  if (!value.quantization || value.type != Element::kUint8) {
    return s.Refuse("has an input that is not quantised");
  }
  return *value.quantization;
}

std::string ZeroPoint(Scope& s, const Quantization& quantization) {
  return s.Scalar(static_cast<double>(quantization.zero_point), Element::kUint8);
}

void ReturnBytes(Scope& s, std::string name, std::optional<Dims> dims, const Quantization& how) {
  s.Set(0, {.name = std::move(name),
            .type = Element::kUint8,
            .dims = std::move(dims),
            .quantization = how});
}

Error Check(const Scope& s, const Quantization& how) {
  return how.zero_point >= 0 && how.zero_point <= 255 && how.scale > 0
             ? Error()
             : s.Refuse("has an impossible scale or zero point");
}

Error Quantize(Scope& s) {
  const Quantization how = OfResult(s);
  NEREID_KIT_TRY(Check(s, how));
  ReturnBytes(s, s.Node("QuantizeLinear", {s.In(0).name, s.Scalar(how.scale), ZeroPoint(s, how)}),
              s.In(0).dims, how);
  return {};
}

Error Dequantize(Scope& s) {
  NEREID_KIT_ASSIGN(const Quantization how, OfInput(s, 0));
  NEREID_KIT_TRY(Check(s, how));
  s.Return(s.Node("DequantizeLinear", {s.In(0).name, s.Scalar(how.scale), ZeroPoint(s, how)}),
           Element::kFloat, s.In(0).dims);
  return {};
}

// Operators whose result has the scale and zero point of the input.
Error CheckSame(const Scope& s, const Quantization& how) {
  for (size_t i = 0; i < s.inputs(); ++i) {
    NEREID_KIT_ASSIGN(const Quantization other, OfInput(s, i));
    if (!(other == how)) {
      return s.Refuse("has inputs with different scales or zero points");
    }
  }
  const bool has_result = s.Has("Y_scale") || s.Has("Y_zero_point");
  return has_result && !(OfResult(s) == how)
             ? s.Refuse("has a scale or zero point that is not that of its input")
             : Error();
}

Error Relu(Scope& s) {
  NEREID_KIT_ASSIGN(const Quantization how, OfInput(s, 0));
  NEREID_KIT_TRY(CheckSame(s, how));
  NEREID_KIT_TRY(Check(s, how));
  ReturnBytes(s, s.Node("Max", {s.In(0).name, ZeroPoint(s, how)}), s.In(0).dims, how);
  return {};
}

// Runs the translation of the operator for numbers on the bytes.
Error OnBytes(Scope& s) {
  NEREID_KIT_ASSIGN(const Quantization how, OfInput(s, 0));
  NEREID_KIT_TRY(CheckSame(s, how));
  const Translation* const translation = FindTranslation(s.target());
  if (translation == nullptr) {
    return s.Refuse("has no translation to ONNX");
  }
  NEREID_KIT_TRY(translation->translate(s));
  s.results()[0]->quantization = how;
  return {};
}

constexpr Translation kTable[] = {
    {"Int8Concat", 1, kAny, OnBytes, "Concat"},
    {"Int8Dequantize", 1, 1, Dequantize},
    {"Int8Flatten", 1, 1, OnBytes, "Flatten"},
    {"Int8Quantize", 1, 1, Quantize},
    {"Int8Relu", 1, 1, Relu},
    {"Int8Reshape", 1, 1, OnBytes, "Reshape"},
    {"Int8Slice", 1, 1, OnBytes, "Slice"},
    {"Int8Transpose", 1, 1, OnBytes, "Transpose"},
};

}  // namespace

std::span<const Translation> Int8Translations() { return kTable; }

}  // namespace nereid::caffe2
