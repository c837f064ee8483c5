// SPDX-License-Identifier: Apache-2.0
// The tables of translations, one for each kind of operator, and what several of them need.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "caffe2_backend/scope.h"

namespace nereid::caffe2 {

// A row of the tables of translations.
struct Translation {
  std::string_view type;  // of Caffe2's operator
  size_t min_inputs;
  size_t max_inputs;
  backend::Error (*translate)(Scope& scope);
  std::string_view target = {};  // ONNX's operator, where the translation is used for several
};
inline constexpr size_t kAny = SIZE_MAX;

// The tables, each in a file of its own.
std::span<const Translation> ElementwiseTranslations();
std::span<const Translation> PairwiseTranslations();
std::span<const Translation> ConvolutionTranslations();
std::span<const Translation> ImageTranslations();
std::span<const Translation> NormalizationTranslations();
std::span<const Translation> MatrixTranslations();
std::span<const Translation> ReductionTranslations();
std::span<const Translation> ShapeTranslations();
std::span<const Translation> OrderTranslations();
std::span<const Translation> PartTranslations();
std::span<const Translation> SelectionTranslations();
std::span<const Translation> FillTranslations();
std::span<const Translation> SparseTranslations();
std::span<const Translation> Int8Translations();

// Returns the translation of Caffe2's operator `type`, or null.
const Translation* FindTranslation(std::string_view type);

// Helpers of several tables.

// The element type that Caffe2's TensorProto.DataType has; nothing for those that ONNX lacks.
std::optional<Element> FromDataType(int64_t data_type);
// The dimensions that result from broadcasting; unknown ones are -1.
std::optional<Dims> Broadcast(const std::optional<Dims>& a, const std::optional<Dims>& b);
// Dimensions of which only the number is known.
inline Dims AnyDims(int64_t rank) { return Dims(static_cast<size_t>(rank), -1); }
// Whether argument `order` says NHWC, the last dimension being the channels.
inline bool IsChannelsLast(const Scope& scope) { return scope.Text("order", "NCHW") == "NHWC"; }
// The dimensions of x without the sizes of space, which a window or a scale changes. REQUIRES: the
// rank of x is known, and at least 3.
Dims ImageDims(const Value& x, bool channels_last);
// Move the channels of a tensor with `rank` dimensions from the last place to the second, and back.
std::string ToChannelsFirst(Scope& scope, const std::string& value, int64_t rank);
std::string ToChannelsLast(Scope& scope, const std::string& value, int64_t rank);
// The shape of a tensor as a tensor, or its dimensions [begin, end) only.
std::string ShapeOf(Scope& scope, const std::string& value);
std::string ShapeOf(Scope& scope, const std::string& value, int64_t begin, int64_t end = INT64_MAX);

}  // namespace nereid::caffe2
