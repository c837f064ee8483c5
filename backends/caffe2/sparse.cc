// SPDX-License-Identifier: Apache-2.0
// Translations of operators on tables of embeddings and of decoders, for which ONNX has nothing:
// they become the operators of kernels.h.
#include "caffe2_backend/kernels.h"
#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::StrCat;

namespace {

// Which input of Caffe2's operator is what; kNone where it has no such input.
constexpr size_t kNone = SIZE_MAX;
struct Places {
  size_t indices = kNone;
  size_t lengths = kNone;
  size_t weights = kNone;
  size_t mapping = kNone;
  size_t scale_bias = kNone;
};

Places PlacesOf(std::string_view type) {
  const bool is_weighted = type.find("Weighted") != std::string_view::npos;
  Places places;
  if (type.starts_with("Lengths")) {
    places.lengths = is_weighted ? 2 : 1;
    places.weights = is_weighted ? 1 : kNone;
    return places;
  }
  const size_t shift = is_weighted ? 1 : 0;
  places.weights = is_weighted ? 1 : kNone;
  places.indices = 1 + shift;
  places.lengths = 2 + shift;
  if (type.ends_with("RowwiseSparse")) {
    places.mapping = 3 + shift;
  } else if (type.ends_with("8BitsRowwise")) {
    places.scale_bias = 3 + shift;
  }
  return places;
}

int64_t ReductionOf(std::string_view type) {
  if (type.find("Mean") != std::string_view::npos) {
    return kMean;
  }
  return type.find("Max") != std::string_view::npos ? kMax : kSum;
}

// How many bits an element has in a table that keeps scale and bias in each row; 0 for plain
// tables.
int64_t FusedBitsOf(std::string_view type) {
  for (const int64_t bits : {8, 4, 2}) {
    const std::string text = StrCat(bits, "BitRowwise");
    if (type.find(text) != std::string_view::npos) {
      return bits;
    }
  }
  return 0;
}

// Sums (or averages, …) rows of a table over segments, whose lengths are an input.
Error ReduceSegments(Scope& s) {
  const Places places = PlacesOf(s.type());
  const auto input = [&](size_t place, Element type) {
    return place == kNone || place >= s.inputs() ? std::string()
                                                 : s.Cast(s.In(place).name, s.In(place).type, type);
  };
  for (const size_t place :
       {places.indices, places.lengths, places.weights, places.mapping, places.scale_bias}) {
    if (place != kNone && place >= s.inputs()) {
      return s.Refuse("has ", s.inputs(), " inputs");
    }
  }
  const int64_t bits = FusedBitsOf(s.type());
  const bool is_quantized = bits != 0 || places.scale_bias != kNone;
  const Value& table = s.In(0);
  const std::string data =
      is_quantized ? table.name : s.Cast(table.name, table.type, Element::kFloat);
  if (is_quantized && table.type != Element::kUint8) {
    return s.Refuse("has a table of type ", NameOf(table.type), ", where uint8 is needed");
  }
  std::optional<Dims> dims = table.dims;
  if (dims && !dims->empty()) {
    dims->front() = s.In(places.lengths).dims && s.In(places.lengths).dims->size() == 1
                        ? s.In(places.lengths).dims->front()
                        : -1;
    if (bits != 0 && dims->back() >= 0) {
      const int64_t tail = bits == 8 ? 8 : 4;
      dims->back() = (dims->back() - tail) * (8 / bits);
    }
  }
  const Attributes attributes{
      {"reduction", ReductionOf(s.type())},
      {"fused_bits", bits},
      {"by_position", int64_t{s.type().find("Positional") != std::string_view::npos ? 1 : 0}}};
  const std::string result =
      s.Node("SegmentReduce",
             {data, input(places.indices, Element::kInt64), input(places.lengths, Element::kInt64),
              input(places.weights, Element::kFloat), input(places.mapping, Element::kInt64),
              input(places.scale_bias, Element::kFloat)},
             attributes, Graph::kOwnDomain);
  s.Return(result, Element::kFloat, dims);
  return {};
}

// Looks up indices in a table of those that were kept, and leaves out the others.
Error SparseLookup(Scope& s) {
  const bool is_weighted = s.inputs() > 3;
  const std::vector<std::string> results =
      s.Nodes("SparseLookup",
              {s.Cast(s.In(0).name, s.In(0).type, Element::kInt64),
               s.Cast(s.In(1).name, s.In(1).type, Element::kInt64),
               s.Cast(s.In(2).name, s.In(2).type, Element::kInt64),
               is_weighted ? s.Cast(s.In(3).name, s.In(3).type, Element::kFloat) : std::string()},
              {}, 3, Graph::kOwnDomain);
  s.Return(s.Cast(results[0], Element::kInt64, s.In(0).type), s.In(0).type, AnyDims(1));
  if (s.outputs() > 1) {
    s.Set(1, {.name = s.Cast(results[1], Element::kInt64, Element::kInt32),
              .type = Element::kInt32,
              .dims = s.In(1).dims});
  }
  if (s.outputs() > 2 && is_weighted) {
    s.Set(2, {.name = results[2], .type = Element::kFloat, .dims = AnyDims(1)});
  }
  return {};
}

Error Decode(Scope& s) {
  const bool is_beam = s.type() == "CTCBeamSearchDecoder";
  const std::string lengths =
      s.inputs() > 1 ? s.Cast(s.In(1).name, s.In(1).type, Element::kInt64) : std::string();
  Attributes attributes;
  if (is_beam) {
    const int64_t width = s.Int("beam_width", 10);
    const int64_t candidates = s.Int("num_candidates", 1);
    constexpr int64_t kMax = 1 << 20;
    if (width < 1 || candidates < 1 || width > kMax || candidates > width) {
      return s.Refuse("has beam_width ", width, " and num_candidates ", candidates);
    }
    attributes = {{"beam_width", width},
                  {"candidates", candidates},
                  {"threshold", s.Real("prune_threshold", 0.001F)}};
  } else {
    attributes = {{"merge", int64_t{s.Flag("merge_repeated", true) ? 1 : 0}}};
  }
  const std::vector<std::string> results =
      s.Nodes(is_beam ? "CtcBeams" : "CtcGreedy", {s.In(0).name, lengths}, attributes,
              is_beam ? 3 : 2, Graph::kOwnDomain);
  for (size_t o = 0; o < s.outputs() && o < results.size(); ++o) {
    s.Set(o, {.name = results[o],
              .type = o == 2 ? Element::kFloat : Element::kInt32,
              .dims = AnyDims(1)});
  }
  return {};
}

constexpr Translation kTable[] = {
    {"CTCBeamSearchDecoder", 1, 2, Decode},
    {"CTCGreedyDecoder", 1, 2, Decode},
    {"LengthsMax", 2, 2, ReduceSegments},
    {"LengthsMean", 2, 2, ReduceSegments},
    {"LengthsSum", 2, 2, ReduceSegments},
    {"LengthsWeightedSum", 3, 3, ReduceSegments},
    {"SparseLengthsMean", 3, 3, ReduceSegments},
    {"SparseLengthsMean8BitsRowwise", 4, 4, ReduceSegments},
    {"SparseLengthsMeanFused2BitRowwise", 3, 3, ReduceSegments},
    {"SparseLengthsMeanFused4BitRowwise", 3, 3, ReduceSegments},
    {"SparseLengthsMeanFused8BitRowwise", 3, 3, ReduceSegments},
    {"SparseLengthsPositionalWeightedSum", 4, 4, ReduceSegments},
    {"SparseLengthsSum", 3, 3, ReduceSegments},
    {"SparseLengthsSum2BitRowwiseSparse", 4, 4, ReduceSegments},
    {"SparseLengthsSum4BitRowwiseSparse", 4, 4, ReduceSegments},
    {"SparseLengthsSum8BitRowwiseSparse", 4, 4, ReduceSegments},
    {"SparseLengthsSum8BitsRowwise", 4, 4, ReduceSegments},
    {"SparseLengthsSumFused2BitRowwise", 3, 3, ReduceSegments},
    {"SparseLengthsSumFused4BitRowwise", 3, 3, ReduceSegments},
    {"SparseLengthsSumFused8BitRowwise", 3, 3, ReduceSegments},
    {"SparseLengthsSumSparseLookup", 3, 4, SparseLookup},
    {"SparseLengthsWeightedSum", 4, 4, ReduceSegments},
    {"SparseLengthsWeightedSum2BitRowwiseSparse", 5, 5, ReduceSegments},
    {"SparseLengthsWeightedSum4BitRowwiseSparse", 5, 5, ReduceSegments},
    {"SparseLengthsWeightedSum8BitRowwiseSparse", 5, 5, ReduceSegments},
    {"SparseLengthsWeightedSum8BitsRowwise", 5, 5, ReduceSegments},
    {"SparseLengthsWeightedSumFused2BitRowwise", 4, 4, ReduceSegments},
    {"SparseLengthsWeightedSumFused4BitRowwise", 4, 4, ReduceSegments},
    {"SparseLengthsWeightedSumFused8BitRowwise", 4, 4, ReduceSegments},
};

}  // namespace

std::span<const Translation> SparseTranslations() { return kTable; }

}  // namespace nereid::caffe2
