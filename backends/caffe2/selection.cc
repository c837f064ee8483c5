// SPDX-License-Identifier: Apache-2.0
// Translations of operators that choose, repeat or count elements.
#include <algorithm>

#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

// Caffe2 counts negative bounds from behind the last element: -1 is the end.
int64_t Bound(int64_t bound) { return bound >= 0 ? bound : bound == -1 ? INT64_MAX : bound + 1; }

// Returns the name of the bounds that an input brings when the model runs.
std::string Bounds(Scope& s, size_t input) {
  const std::string given = s.Cast(s.In(input).name, s.In(input).type, Element::kInt64);
  // There may be fewer bounds than dimensions.
  const std::string bounded =
      s.Node("Slice", {ShapeOf(s, s.In(0).name), s.Vector({0}), ShapeOf(s, given)});
  const std::string sizes = s.Node("Add", {bounded, s.Scalar(int64_t{1})});
  const std::string from_behind = s.Node("Add", {given, sizes});
  const std::string is_negative = s.Node("Less", {given, s.Scalar(int64_t{0})});
  return s.Node("Where", {is_negative, from_behind, given});
}

Error Slice(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  std::vector<int64_t> starts = s.Ints("starts");
  std::vector<int64_t> ends = s.Ints("ends");
  Dims dims = *s.In(0).dims;
  if (s.inputs() == 3) {
    const auto known_starts = s.Constants(s.In(1));
    const auto known_ends = s.Constants(s.In(2));
    if (!known_starts || !known_ends) {
      s.Return(s.Node("Slice", {s.In(0).name, Bounds(s, 1), Bounds(s, 2)}), s.In(0).type,
               AnyDims(rank));
      return {};
    }
    starts = *known_starts;
    ends = *known_ends;
  } else if (s.inputs() == 2) {
    return s.Refuse("has 2 inputs, where 1 or 3 are needed");
  }
  if (starts.size() != ends.size() || static_cast<int64_t>(starts.size()) > rank) {
    return s.Refuse("has ", starts.size(), " starts and ", ends.size(), " ends for an input of ",
                    rank, " dimensions");
  }
  for (size_t d = 0; d < starts.size(); ++d) {
    if (starts[d] != 0 || ends[d] != -1) {
      dims[d] =
          starts[d] >= 0 && ends[d] >= starts[d] && dims[d] >= ends[d] ? ends[d] - starts[d] : -1;
    }
    starts[d] = Bound(starts[d]);
    ends[d] = Bound(ends[d]);
  }
  s.Return(s.Node("Slice", {s.In(0).name, s.Vector(starts), s.Vector(ends)}), s.In(0).type, dims);
  return {};
}

Error Gather(Scope& s) {
  if (s.Flag("match_outer", false)) {
    return s.Refuse("has match_outer, which has no translation to ONNX");
  }
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", s.type() == "BatchGather" ? 1 : 0, rank));
  std::optional<Dims> dims;
  if (s.In(1).dims) {
    dims = s.In(0).dims;
    dims->erase(dims->begin() + axis);
    dims->insert(dims->begin() + axis, s.In(1).dims->begin(), s.In(1).dims->end());
  }
  s.Return(s.Node("Gather", {s.In(0).name, s.In(1).name}, {{"axis", axis}}), s.In(0).type, dims);
  return {};
}

// Repeats a tensor along one dimension.
Error Tile(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  int64_t tiles = s.Int("tiles", 1);
  int64_t axis = s.Int("axis", 0);
  for (size_t i = 1; i < s.inputs(); ++i) {
    const auto constant = s.Constants(s.In(i));
    if (!constant || constant->size() != 1) {
      return s.Refuse("takes its tiles or axis from an input that is not one constant number");
    }
    (i == 1 ? tiles : axis) = constant->front();
  }
  axis += axis < 0 ? rank : 0;
  if (tiles < 0 || axis < 0 || axis >= rank) {
    return s.Refuse("has tiles ", tiles, " and axis ", axis, " for an input of ", rank,
                    " dimensions");
  }
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(axis)] = tiles;
  Dims dims = *s.In(0).dims;
  int64_t& size = dims[static_cast<size_t>(axis)];
  size = size < 0 || __builtin_mul_overflow(size, tiles, &size) ? -1 : size;
  NEREID_KIT_TRY(s.Fill(dims));
  s.Return(s.Node("Tile", {s.In(0).name, s.Vector(repeats)}), s.In(0).type, dims);
  return {};
}

Error NumpyTile(Scope& s) {
  const std::string repeats = s.Cast(s.In(1).name, s.In(1).type, Element::kInt64);
  std::optional<Dims> dims;
  if (s.In(0).dims) {
    dims = AnyDims(static_cast<int64_t>(s.In(0).dims->size()));
    const auto constant = s.Constants(s.In(1)).value_or(std::vector<int64_t>());
    for (size_t d = 0; d < std::min(dims->size(), constant.size()); ++d) {
      const int64_t size = (*s.In(0).dims)[d];
      int64_t& product = (*dims)[d];
      product = size < 0 || __builtin_mul_overflow(size, constant[d], &product) ? -1 : product;
    }
    NEREID_KIT_TRY(s.Fill(dims));
  }
  s.Return(s.Node("Tile", {s.In(0).name, repeats}), s.In(0).type, dims);
  return {};
}

// Numbers from a start (0) to an end in steps (1), each a tensor of one element.
Error Range(Scope& s) {
  const Element type = s.In(0).type;
  const auto number = [&s](size_t i) { return s.Node("Reshape", {s.In(i).name, s.Vector({})}); };
  const std::string start = s.inputs() > 1 ? number(0) : s.Scalar(0.0, type);
  const std::string stop = number(s.inputs() > 1 ? 1 : 0);
  const std::string step = s.inputs() > 2 ? number(2) : s.Scalar(1.0, type);
  Dims dims = AnyDims(1);
  const auto last = s.Constants(s.In(s.inputs() > 1 ? 1 : 0));
  if (last && last->size() == 1 && s.inputs() == 1) {
    dims.front() = std::max<int64_t>(last->front(), 0);
  }
  NEREID_KIT_TRY(s.Fill(dims));
  s.Return(s.Node("Range", {start, stop, step}), type, dims);
  return {};
}

// A row of zeros for each index, with a 1 at the index.
Error OneHot(Scope& s) {
  const std::string depth = s.Node("Reshape", {s.In(1).name, s.Vector({})});
  const float off_on[] = {0.0F, 1.0F};
  Constant values{.type = Element::kFloat,
                  .dims = {2},
                  .bytes = std::string(reinterpret_cast<const char*>(off_on), sizeof(off_on)),
                  .texts = {}};
  const std::string indices = s.Cast(s.In(0).name, s.In(0).type, Element::kInt64);
  const std::string rows = s.Node(
      "OneHot",
      {indices, s.Cast(depth, s.In(1).type, Element::kInt64), s.graph().Add(std::move(values))},
      {{"axis", int64_t{-1}}});
  s.Return(rows, Element::kFloat, AnyDims(2));
  return {};
}

constexpr Translation kTable[] = {
    {"BatchGather", 2, 2, Gather}, {"Gather", 2, 2, Gather}, {"NumpyTile", 2, 2, NumpyTile},
    {"OneHot", 2, 2, OneHot},      {"Range", 1, 3, Range},   {"Slice", 1, 3, Slice},
    {"Tile", 1, 3, Tile},
};

}  // namespace

std::span<const Translation> SelectionTranslations() { return kTable; }

}  // namespace nereid::caffe2
