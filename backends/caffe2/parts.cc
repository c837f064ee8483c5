// SPDX-License-Identifier: Apache-2.0
// Translations of operators that join tensors, and cut them into parts.
#include <algorithm>

#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;

namespace {

// The dimension that arguments `axis` or `order` name.
Result<int64_t> AxisOrOrder(const Scope& s, int64_t rank) {
  if (s.Has("axis")) {
    return s.Axis("axis", -1, rank);
  }
  const int64_t axis = IsChannelsLast(s) ? 3 : 1;
  if (axis >= rank) {
    return s.Refuse("has no axis, and its input has ", rank, " dimensions");
  }
  return axis;
}

Error Concat(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  const bool adds = s.Flag("add_axis", false);
  NEREID_KIT_ASSIGN(const int64_t axis, AxisOrOrder(s, adds ? rank + 1 : rank));
  std::vector<std::string> parts;
  std::vector<std::string> sizes;
  Dims dims = *s.In(0).dims;
  if (adds) {
    dims.insert(dims.begin() + axis, 1);
  }
  int64_t& sum = dims[static_cast<size_t>(axis)];
  sum = 0;
  for (size_t i = 0; i < s.inputs(); ++i) {
    NEREID_KIT_ASSIGN(const int64_t other, s.Rank(i));
    if (other != rank) {
      return s.Refuse("has inputs with ", rank, " and ", other, " dimensions");
    }
    const std::string& name = s.In(i).name;
    parts.push_back(adds ? s.Node("Unsqueeze", {name}, {{"axes", std::vector<int64_t>{axis}}})
                         : name);
    const int64_t size = adds ? 1 : (*s.In(i).dims)[static_cast<size_t>(axis)];
    sum = sum < 0 || size < 0 || __builtin_add_overflow(sum, size, &sum) ? -1 : sum;
    if (s.outputs() > 1) {
      sizes.push_back(ShapeOf(s, parts.back(), axis, axis + 1));
    }
  }
  s.Return(s.Node("Concat", parts, {{"axis", axis}}), s.In(0).type, dims);
  if (s.outputs() > 1) {
    const std::string all = s.Node("Concat", sizes, {{"axis", int64_t{0}}});
    s.Set(1, {.name = s.Cast(all, Element::kInt64, Element::kInt32),
              .type = Element::kInt32,
              .dims = Dims{static_cast<int64_t>(s.inputs())}});
  }
  return {};
}

// Cuts by lengths that an input has when the model runs.
std::vector<std::string> SplitByInput(Scope& s, int64_t axis) {
  const std::string lengths = s.Cast(s.In(1).name, s.In(1).type, Element::kInt64);
  const std::string ends = s.Node("CumSum", {lengths, s.Scalar(int64_t{0})});
  const std::string begins = s.Node("Sub", {ends, lengths});
  std::vector<std::string> parts;
  for (size_t o = 0; o < s.outputs(); ++o) {
    const std::string at = s.Vector({static_cast<int64_t>(o)});
    const auto pick = [&](const std::string& from) {
      return s.Node("Gather", {from, at}, {{"axis", int64_t{0}}});
    };
    parts.push_back(s.Node("Slice", {s.In(0).name, pick(begins), pick(ends), s.Vector({axis})}));
  }
  return parts;
}

Error Split(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, AxisOrOrder(s, rank));
  std::vector<int64_t> sizes = s.Ints("split");
  std::vector<std::string> parts;
  if (s.inputs() > 1) {
    sizes = s.Constants(s.In(1)).value_or(std::vector<int64_t>());
  }
  if (!sizes.empty() &&
      (sizes.size() != s.outputs() || *std::min_element(sizes.begin(), sizes.end()) < 0)) {
    return s.Refuse("has ", sizes.size(), " lengths for ", s.outputs(), " outputs");
  }
  if (s.inputs() > 1 && sizes.empty()) {
    parts = SplitByInput(s, axis);
  } else {
    Attributes attributes{{"axis", axis}};
    if (!sizes.empty()) {
      attributes.push_back({"split", sizes});
    }
    parts = s.Nodes("Split", {s.In(0).name}, attributes, s.outputs());
  }
  const bool removes = s.Flag("add_axis", false);
  const int64_t whole = (*s.In(0).dims)[static_cast<size_t>(axis)];
  for (size_t o = 0; o < s.outputs(); ++o) {
    Dims dims = *s.In(0).dims;
    if (removes) {
      parts[o] = s.Node("Squeeze", {parts[o]}, {{"axes", std::vector<int64_t>{axis}}});
      dims.erase(dims.begin() + axis);
    } else {
      const auto count = static_cast<int64_t>(s.outputs());
      const bool is_equal = s.inputs() == 1 && sizes.empty() && whole >= 0;
      dims[static_cast<size_t>(axis)] = is_equal ? whole / count : sizes.empty() ? -1 : sizes[o];
    }
    s.Set(o, {.name = parts[o], .type = s.In(0).type, .dims = dims});
  }
  return s.outputs() == 0 ? s.Refuse("has no outputs") : Error();
}

constexpr Translation kTable[] = {
    {"Concat", 1, kAny, Concat},
    {"Split", 1, 2, Split},
};

}  // namespace

std::span<const Translation> PartTranslations() { return kTable; }

}  // namespace nereid::caffe2
