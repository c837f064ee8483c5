// SPDX-License-Identifier: Apache-2.0
// Translations of operators that change only the shape of a tensor, or tell it.
#include <algorithm>
#include <set>

#include "caffe2_backend/scope.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;

namespace {

// The dimensions that ONNX's and Caffe2's Reshape make: 0 copies one, -1 is what is left.
Dims Reshaped(const std::optional<Dims>& from, const std::vector<int64_t>& shape) {
  Dims dims = shape;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) {
      dims[d] = from && d < from->size() ? (*from)[d] : -1;
    }
  }
  const bool is_known =
      from && std::all_of(from->begin(), from->end(), [](int64_t d) { return d > 0; });
  const auto open = std::find(dims.begin(), dims.end(), -1);
  if (!is_known || open == dims.end() || std::count(dims.begin(), dims.end(), -1) > 1) {
    return dims;
  }
  int64_t elements = 1;
  int64_t others = 1;
  bool overflows = false;
  for (const int64_t dim : *from) {
    overflows = overflows || __builtin_mul_overflow(elements, dim, &elements);
  }
  for (const int64_t dim : dims) {
    overflows = overflows || (dim != -1 && __builtin_mul_overflow(others, dim, &others));
  }
  if (!overflows && others > 0 && elements % others == 0) {
    *open = elements / others;
  }
  return dims;
}

Error Reshape(Scope& s) {
  const Value& x = s.In(0);
  std::string shape;
  std::optional<Dims> dims;
  if (s.inputs() > 1) {
    shape = s.Cast(s.In(1).name, s.In(1).type, Element::kInt64);
    if (const auto constant = s.Constants(s.In(1))) {
      dims = Reshaped(x.dims, *constant);
    } else if (s.In(1).dims && s.In(1).dims->size() == 1 && s.In(1).dims->front() >= 0 &&
               s.In(1).dims->front() < 32) {
      dims = AnyDims(s.In(1).dims->front());
    }
  } else {
    const std::vector<int64_t> sizes = s.Ints("shape");
    if (!s.Has("shape")) {
      return s.Refuse("has no shape");
    }
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t d) { return d < -1; })) {
      return s.Refuse("has a shape with negative sizes");
    }
    shape = s.Vector(sizes);
    dims = Reshaped(x.dims, sizes);
  }
  s.Return(s.Node("Reshape", {x.name, shape}), x.type, dims);
  if (s.outputs() > 1) {
    Dims rank{x.dims ? static_cast<int64_t>(x.dims->size()) : -1};
    s.Set(1, {.name = ShapeOf(s, x.name), .type = Element::kInt64, .dims = rank});
  }
  return {};
}

Error ResizeLike(Scope& s) {
  s.Return(s.Node("Reshape", {s.In(0).name, ShapeOf(s, s.In(1).name)}), s.In(0).type, s.In(1).dims);
  return {};
}

int64_t Product(const Dims& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) {
    if (dims[d] < 0 || __builtin_mul_overflow(product, dims[d], &product)) {
      return -1;
    }
  }
  return product;
}

Error Flatten(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  const int64_t axis = s.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return s.Refuse("has axis ", axis, ", but its input has ", rank, " dimensions");
  }
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  const Dims& dims = *s.In(0).dims;
  s.Return(s.Node("Flatten", {s.In(0).name}, {{"axis", static_cast<int64_t>(at)}}), s.In(0).type,
           Dims{Product(dims, 0, at), Product(dims, at, dims.size())});
  return {};
}

Error FlattenToVec(Scope& s) {
  s.Return(s.Node("Reshape", {s.In(0).name, s.Vector({-1})}), s.In(0).type, AnyDims(1));
  return {};
}

// Argument dims as dimensions of a tensor of `rank`, in order and each once.
Result<std::vector<int64_t>> Positions(const Scope& s, int64_t rank) {
  std::set<int64_t> positions;
  for (const int64_t dim : s.Ints("dims")) {
    if (dim < 0 || dim >= rank) {
      return s.Refuse("has dimension ", dim, " in dims, where there are ", rank);
    }
    positions.insert(dim);
  }
  return std::vector<int64_t>(positions.begin(), positions.end());
}

Error ExpandDims(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  const std::vector<int64_t> given = s.Ints("dims");
  const std::set<int64_t> distinct(given.begin(), given.end());
  NEREID_KIT_ASSIGN(const std::vector<int64_t> axes,
                    Positions(s, rank + static_cast<int64_t>(distinct.size())));
  if (axes.empty()) {
    s.Set(0, s.In(0));
    return {};
  }
  Dims dims = *s.In(0).dims;
  for (const int64_t axis : axes) {
    dims.insert(dims.begin() + axis, 1);
  }
  s.Return(s.Node("Unsqueeze", {s.In(0).name}, {{"axes", axes}}), s.In(0).type, dims);
  return {};
}

Error Squeeze(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const std::vector<int64_t> axes, Positions(s, rank));
  if (axes.empty()) {
    s.Set(0, s.In(0));
    return {};
  }
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
      dims.push_back((*s.In(0).dims)[static_cast<size_t>(d)]);
    }
  }
  s.Return(s.Node("Squeeze", {s.In(0).name}, {{"axes", axes}}), s.In(0).type, dims);
  return {};
}

Error Transpose(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  std::vector<int64_t> order = s.Ints("axes");
  if (order.empty()) {
    for (int64_t d = rank - 1; d >= 0; --d) {
      order.push_back(d);
    }
  }
  std::vector<bool> is_there(static_cast<size_t>(rank), false);
  Dims dims;
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= rank || is_there[static_cast<size_t>(axis)]) {
      break;
    }
    is_there[static_cast<size_t>(axis)] = true;
    dims.push_back((*s.In(0).dims)[static_cast<size_t>(axis)]);
  }
  if (dims.size() != order.size() || static_cast<int64_t>(order.size()) != rank) {
    return s.Refuse("has axes that are not an order of the ", rank, " dimensions of its input");
  }
  s.Return(s.Node("Transpose", {s.In(0).name}, {{"perm", order}}), s.In(0).type, dims);
  return {};
}

Error ChangeOrder(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank < 3) {
    return s.Refuse("has an input with ", rank, " dimensions, where at least 3 are needed");
  }
  const bool to_last = s.type() == "NCHW2NHWC";
  Dims dims = *s.In(0).dims;
  if (to_last) {
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  } else {
    std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  }
  s.Return(to_last ? ToChannelsLast(s, s.In(0).name, rank) : ToChannelsFirst(s, s.In(0).name, rank),
           s.In(0).type, dims);
  return {};
}

// The first two dimensions become one.
Error MergeDim(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank < 2) {
    return s.Refuse("has an input with ", rank, " dimensions, where at least 2 are needed");
  }
  const Dims& from = *s.In(0).dims;
  Dims dims(from.begin() + 1, from.end());
  dims.front() = Product(from, 0, 2);
  const std::string shape =
      s.Node("Concat", {s.Vector({-1}), ShapeOf(s, s.In(0).name, 2)}, {{"axis", int64_t{0}}});
  s.Return(s.Node("Reshape", {s.In(0).name, shape}), s.In(0).type, dims);
  return {};
}

// The first dimension becomes two, of which the first has dim_size.
Error PrependDim(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  const int64_t size = s.Int("dim_size", 0);
  if (rank < 1 || size < 1) {
    return s.Refuse("has dim_size ", size, " for an input of ", rank, " dimensions");
  }
  Dims dims = *s.In(0).dims;
  dims.front() = dims.front() < 0 ? -1 : dims.front() / size;
  dims.insert(dims.begin(), size);
  const std::string shape =
      s.Node("Concat", {s.Vector({size, -1}), ShapeOf(s, s.In(0).name, 1)}, {{"axis", int64_t{0}}});
  s.Return(s.Node("Reshape", {s.In(0).name, shape}), s.In(0).type, dims);
  return {};
}

Error Shape(Scope& s) {
  std::string shape = ShapeOf(s, s.In(0).name);
  int64_t count = s.In(0).dims ? static_cast<int64_t>(s.In(0).dims->size()) : -1;
  const std::vector<int64_t> axes = s.Ints("axes");
  if (!axes.empty()) {
    for (const int64_t axis : axes) {
      if (axis < 0 || (count >= 0 && axis >= count)) {
        return s.Refuse("tells dimension ", axis, " of an input with ", count);
      }
    }
    shape = s.Node("Gather", {shape, s.Vector(axes)}, {{"axis", int64_t{0}}});
    count = static_cast<int64_t>(axes.size());
  }
  s.Return(shape, Element::kInt64, Dims{count});
  return {};
}

Error Size(Scope& s) {
  s.Return(s.Node("Size", {s.In(0).name}), Element::kInt64, Dims());
  return {};
}

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
    {"Concat", 1, kAny, Concat},      {"ExpandDims", 1, 1, ExpandDims},
    {"Flatten", 1, 1, Flatten},       {"FlattenToVec", 1, 1, FlattenToVec},
    {"MergeDim", 1, 1, MergeDim},     {"NCHW2NHWC", 1, 1, ChangeOrder},
    {"NHWC2NCHW", 1, 1, ChangeOrder}, {"PrependDim", 1, 1, PrependDim},
    {"Reshape", 1, 2, Reshape},       {"ResizeLike", 2, 2, ResizeLike},
    {"Shape", 1, 1, Shape},           {"Size", 1, 1, Size},
    {"Split", 1, 2, Split},           {"Squeeze", 1, 1, Squeeze},
    {"Transpose", 1, 1, Transpose},
};

}  // namespace

std::span<const Translation> ShapeTranslations() { return kTable; }

}  // namespace nereid::caffe2
