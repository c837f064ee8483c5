// SPDX-License-Identifier: Apache-2.0
// Translations of operators that make tensors: weights, which the file contains, and constants.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;

namespace {

// The number of elements of argument `shape`; fails where that is no shape.
Result<uint64_t> Elements(const Scope& s, const Dims& dims) {
  uint64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(dim), &elements)) {
      return s.Refuse("has an impossible shape");
    }
  }
  return elements;
}

Error CheckCount(const Scope& s, uint64_t elements, size_t values) {
  return elements == values ? Error()
                            : s.Refuse("has ", values, " values for a shape of ", elements);
}

template <typename T, typename From>
std::string Pack(const std::vector<From>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

Error AddFilled(Scope& s, Constant constant, Quantization* quantization = nullptr) {
  Value value{.name = {}, .type = constant.type, .dims = constant.dims};
  if (quantization != nullptr) {
    value.quantization = *quantization;
  }
  value.name = s.graph().Add(std::move(constant));
  s.Set(0, std::move(value));
  return {};
}

// The operators GivenTensor…Fill: the argument `values` in the shape `shape`.
template <typename T, Element kType>
Error Given(Scope& s) {
  const Argument* values = s.Find("values");
  if (s.inputs() > 0) {
    return s.Refuse("takes its shape from an input, which has no translation to ONNX");
  }
  Constant constant{.type = kType, .dims = s.Ints("shape"), .bytes = {}, .texts = {}};
  NEREID_KIT_ASSIGN(const uint64_t elements, Elements(s, constant.dims));
  if (values != nullptr) {
    if constexpr (std::is_floating_point_v<T>) {
      constant.bytes = Pack<T>(values->Reals());
    } else {
      constant.bytes = Pack<T>(values->Integers());
    }
  }
  NEREID_KIT_TRY(CheckCount(s, elements, constant.bytes.size() / sizeof(T)));
  return AddFilled(s, std::move(constant));
}

Error GivenTexts(Scope& s) {
  const Argument* values = s.Find("values");
  Constant constant{.type = Element::kString, .dims = s.Ints("shape"), .bytes = {}, .texts = {}};
  NEREID_KIT_ASSIGN(const uint64_t elements, Elements(s, constant.dims));
  if (values != nullptr) {
    for (const std::string_view text : values->Texts()) {
      constant.texts.emplace_back(text);
    }
  }
  NEREID_KIT_TRY(CheckCount(s, elements, constant.texts.size()));
  return AddFilled(s, std::move(constant));
}

// Bytes that the file has as one text, with a scale and a zero point in Int8GivenTensorFill.
Error GivenBytes(Scope& s) {
  const Argument* values = s.Find("values");
  Constant constant{.type = Element::kUint8, .dims = s.Ints("shape"), .bytes = {}, .texts = {}};
  NEREID_KIT_ASSIGN(const uint64_t elements, Elements(s, constant.dims));
  if (values != nullptr) {
    if (values->text()) {
      constant.bytes = *values->text();
    }
    for (const std::string_view text : values->Texts()) {
      constant.bytes += text;
    }
  }
  NEREID_KIT_TRY(CheckCount(s, elements, constant.bytes.size()));
  Quantization quantization{.scale = s.Real("Y_scale", 1.0F),
                            .zero_point = s.Int("Y_zero_point", 0)};
  const bool is_int8 = s.type() == "Int8GivenTensorFill";
  return AddFilled(s, std::move(constant), is_int8 ? &quantization : nullptr);
}

Error Int8GivenInts(Scope& s) {
  const Argument* values = s.Find("values");
  Constant constant{.type = Element::kInt32, .dims = s.Ints("shape"), .bytes = {}, .texts = {}};
  NEREID_KIT_ASSIGN(const uint64_t elements, Elements(s, constant.dims));
  if (values != nullptr) {
    constant.bytes = Pack<int32_t>(values->Integers());
  }
  NEREID_KIT_TRY(CheckCount(s, elements, constant.bytes.size() / sizeof(int32_t)));
  Quantization quantization{.scale = s.Real("Y_scale", 1.0F),
                            .zero_point = s.Int("Y_zero_point", 0)};
  return AddFilled(s, std::move(constant), &quantization);
}

// The type and the value of ConstantFill, as a constant of one element.
Result<Constant> ConstantValue(const Scope& s) {
  const Argument* argument = s.Find("value");
  const int64_t data_type = s.Int("dtype", 1);
  std::optional<Element> type = FromDataType(data_type);
  if (argument != nullptr && !s.Has("dtype")) {
    // Without a type, that of the value counts.
    if (argument->integer()) {
      type = Element::kInt64;
    } else if (argument->text()) {
      type = Element::kString;
    }
  }
  Constant constant{
      .type = type.value_or(Element::kUndefined), .dims = {1}, .bytes = {}, .texts = {}};
  const std::vector<int64_t> integer{s.Int("value", 0)};
  switch (constant.type) {
    case Element::kFloat:
      constant.bytes = Pack<float>(std::vector<float>{s.Real("value", 0.0F)});
      return constant;
    case Element::kDouble:
      constant.bytes = Pack<double>(std::vector<float>{s.Real("value", 0.0F)});
      return constant;
    case Element::kInt32:
      constant.bytes = Pack<int32_t>(integer);
      return constant;
    case Element::kInt64:
      constant.bytes = Pack<int64_t>(integer);
      return constant;
    case Element::kInt16:
      constant.bytes = Pack<int16_t>(integer);
      return constant;
    case Element::kUint16:
      constant.bytes = Pack<uint16_t>(integer);
      return constant;
    case Element::kInt8:
    case Element::kUint8:
      constant.bytes = Pack<uint8_t>(integer);
      return constant;
    case Element::kBool:
      constant.bytes = std::string(1, integer[0] != 0 ? '\1' : '\0');
      return constant;
    case Element::kString:
      constant.texts.emplace_back(s.Text("value", ""));
      return constant;
    default:
      return s.Refuse("has dtype ", data_type, ", for which there is no translation to ONNX");
  }
}

// The shape of ConstantFill with an input: that of the input, or the input itself, and extra_shape.
Result<std::string> ShapeFromInput(Scope& s, std::optional<Dims>* dims) {
  const std::vector<int64_t> extra = s.Ints("extra_shape");
  const bool is_shape = s.Flag("input_as_shape", false);
  const Value& input = s.In(0);
  if (!is_shape) {
    *dims = input.dims;
  } else if (const auto constant = s.Constants(input)) {
    *dims = *constant;
  } else if (input.dims && input.dims->size() == 1 && input.dims->front() >= 0 &&
             input.dims->front() < 32) {
    *dims = AnyDims(input.dims->front());
  }
  std::string shape =
      is_shape ? s.Cast(input.name, input.type, Element::kInt64) : ShapeOf(s, input.name);
  if (!extra.empty()) {
    shape = s.Node("Concat", {shape, s.Vector(extra)}, {{"axis", int64_t{0}}});
    if (*dims) {
      (*dims)->insert((*dims)->end(), extra.begin(), extra.end());
    }
  }
  return shape;
}

Error ConstantFill(Scope& s) {
  NEREID_KIT_ASSIGN(Constant value, ConstantValue(s));
  if (s.inputs() == 0) {
    Constant filled{.type = value.type, .dims = s.Ints("shape"), .bytes = {}, .texts = {}};
    NEREID_KIT_ASSIGN(const uint64_t elements, Elements(s, filled.dims));
    const uint64_t size = std::max<uint64_t>(value.bytes.size(), sizeof(std::string));
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements, size, &bytes)) {
      return s.Refuse("has an impossible shape");
    }
    NEREID_KIT_TRY(s.Fill(bytes));
    if (value.type == Element::kString) {
      filled.texts.assign(elements, value.texts.front());
    } else {
      filled.bytes.reserve(elements * value.bytes.size());
      for (uint64_t i = 0; i < elements; ++i) {
        filled.bytes += value.bytes;
      }
    }
    return AddFilled(s, std::move(filled));
  }
  std::optional<Dims> dims;
  NEREID_KIT_ASSIGN(const std::string shape, ShapeFromInput(s, &dims));
  NEREID_KIT_TRY(s.Fill(dims));
  const Element type = value.type;
  const std::string made = s.Node("Expand", {s.graph().Add(std::move(value)), shape});
  s.Return(made, type, dims);
  return {};
}

Error RefuseRandom(Scope& s) {
  return s.Refuse(
      "fills a tensor at random: export the network with its weights "
      "(GivenTensorFill), as they are after training");
}

constexpr Translation kTable[] = {
    {"ConstantFill", 0, 1, ConstantFill},
    {"GivenTensorBoolFill", 0, 1, Given<bool, Element::kBool>},
    {"GivenTensorByteStringToUInt8Fill", 0, 0, GivenBytes},
    {"GivenTensorDoubleFill", 0, 1, Given<double, Element::kDouble>},
    {"GivenTensorFill", 0, 1, Given<float, Element::kFloat>},
    {"GivenTensorInt16Fill", 0, 1, Given<int16_t, Element::kInt16>},
    {"GivenTensorInt64Fill", 0, 1, Given<int64_t, Element::kInt64>},
    {"GivenTensorIntFill", 0, 1, Given<int32_t, Element::kInt32>},
    {"GivenTensorStringFill", 0, 0, GivenTexts},
    {"Int8GivenIntTensorFill", 0, 0, Int8GivenInts},
    {"Int8GivenTensorFill", 0, 0, GivenBytes},
    {"GaussianFill", 0, kAny, RefuseRandom},
    {"MSRAFill", 0, kAny, RefuseRandom},
    {"RandomFill", 0, kAny, RefuseRandom},
    {"TruncatedGaussianFill", 0, kAny, RefuseRandom},
    {"UniformFill", 0, kAny, RefuseRandom},
    {"UniformIntFill", 0, kAny, RefuseRandom},
    {"UniqueUniformFill", 0, kAny, RefuseRandom},
    {"XavierFill", 0, kAny, RefuseRandom},
};

}  // namespace

std::span<const Translation> FillTranslations() { return kTable; }

}  // namespace nereid::caffe2
