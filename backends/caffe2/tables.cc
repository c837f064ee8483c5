// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/tables.h"

#include <unordered_map>

namespace nereid::caffe2 {

namespace {

using Index = std::unordered_map<std::string_view, const Translation*>;

Index MakeIndex() {
  Index index;
  for (const auto table :
       {ElementwiseTranslations(), PairwiseTranslations(), ConvolutionTranslations(),
        ImageTranslations(), NormalizationTranslations(), MatrixTranslations(),
        ReductionTranslations(), ShapeTranslations(), OrderTranslations(), PartTranslations(),
        SelectionTranslations(), FillTranslations(), SparseTranslations(), Int8Translations()}) {
    for (const Translation& translation : table) {
      index.emplace(translation.type, &translation);
    }
  }
  return index;
}

}  // namespace

const Translation* FindTranslation(std::string_view type) {
  static const auto* const index = new Index(MakeIndex());
  const auto found = index->find(type);
  return found == index->end() ? nullptr : found->second;
}

std::optional<Element> FromDataType(int64_t data_type) {
  switch (data_type) {
    case 1:
      return Element::kFloat;
    case 2:
      return Element::kInt32;
    case 3:  // BYTE
    case 6:
      return Element::kUint8;
    case 4:
      return Element::kString;
    case 5:
      return Element::kBool;
    case 7:
      return Element::kInt8;
    case 8:
      return Element::kUint16;
    case 9:
      return Element::kInt16;
    case 10:
      return Element::kInt64;
    case 12:
      return Element::kHalf;
    case 13:
      return Element::kDouble;
    default:
      return std::nullopt;
  }
}

std::optional<Dims> Broadcast(const std::optional<Dims>& a, const std::optional<Dims>& b) {
  if (!a || !b) {
    return std::nullopt;
  }
  const Dims& longer = a->size() >= b->size() ? *a : *b;
  const Dims& shorter = a->size() >= b->size() ? *b : *a;
  Dims dims = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = dims[offset + i];
    if (dim == 1 || (dim == -1 && shorter[i] != 1)) {
      dim = shorter[i];
    }
  }
  return dims;
}

Dims ImageDims(const Value& x, bool channels_last) {
  Dims dims = AnyDims(static_cast<int64_t>(x.dims->size()));
  dims.front() = x.dims->front();
  const size_t channels = channels_last ? dims.size() - 1 : 1;
  dims[channels] = (*x.dims)[channels];
  return dims;
}

std::string ToChannelsFirst(Scope& scope, const std::string& value, int64_t rank) {
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d) {
    order.push_back(d);
  }
  return scope.Node("Transpose", {value}, {{"perm", order}});
}

std::string ToChannelsLast(Scope& scope, const std::string& value, int64_t rank) {
  std::vector<int64_t> order{0};
  for (int64_t d = 2; d < rank; ++d) {
    order.push_back(d);
  }
  order.push_back(1);
  return scope.Node("Transpose", {value}, {{"perm", order}});
}

std::string ShapeOf(Scope& scope, const std::string& value) { return scope.Node("Shape", {value}); }

std::string ShapeOf(Scope& scope, const std::string& value, int64_t begin, int64_t end) {
  const std::string first = scope.Vector({begin});
  const std::string last = scope.Vector({end});
  return scope.Node("Slice", {ShapeOf(scope, value), first, last});
}

}  // namespace nereid::caffe2
