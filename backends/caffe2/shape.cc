// SPDX-License-Identifier: Apache-2.0
// Translations of operators that change only the shape of a tensor, or tell it.
#include <algorithm>
#include <set>

#include "caffe2_backend/tables.h"

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

constexpr Translation kTable[] = {
    {"ExpandDims", 1, 1, ExpandDims},
    {"Flatten", 1, 1, Flatten},
    {"FlattenToVec", 1, 1, FlattenToVec},
    {"MergeDim", 1, 1, MergeDim},
    {"PrependDim", 1, 1, PrependDim},
    {"Reshape", 1, 2, Reshape},
    {"ResizeLike", 2, 2, ResizeLike},
    {"Shape", 1, 1, Shape},
    {"Size", 1, 1, Size},
    {"Squeeze", 1, 1, Squeeze},
};

}  // namespace

std::span<const Translation> ShapeTranslations() { return kTable; }

}  // namespace nereid::caffe2
