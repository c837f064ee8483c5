// SPDX-License-Identifier: Apache-2.0
// Translations of products of matrices and of reductions.
#include <algorithm>
#include <numeric>

#include "caffe2_backend/scope.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

std::optional<Dims> Front(const Value& value, int64_t count) {
  return Dims(value.dims->begin(), value.dims->begin() + count);
}

// Y = X W' + b, everything from `axis` on being a row of X; the weights are transposed already in
// FCTransposed.
Error FullyConnected(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t weight_rank, s.Rank(1));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", 1, rank));
  NEREID_KIT_ASSIGN(const int64_t weight_axis, s.Axis("axis_w", 1, weight_rank));
  const bool is_transposed = s.type() == "FCTransposed";
  const Value& w = s.In(1);
  std::string weights = w.name;
  if (weight_rank != 2) {
    weights = s.Node("Flatten", {weights}, {{"axis", weight_axis}});
  }
  int64_t width = is_transposed ? (weight_rank == 2 ? w.dims->back() : -1)
                                : (weight_axis == 1 ? w.dims->front() : -1);
  if (s.In(2).dims && s.In(2).dims->size() == 1) {
    width = s.In(2).dims->front();
  }
  Dims dims = *Front(s.In(0), axis);
  dims.push_back(width);
  if (axis == 1) {
    const std::string x =
        rank == 2 ? s.In(0).name : s.Node("Flatten", {s.In(0).name}, {{"axis", int64_t{1}}});
    const Attributes attributes{{"transB", int64_t{is_transposed ? 0 : 1}}};
    s.Return(s.Node("Gemm", {x, weights, s.In(2).name}, attributes), s.In(0).type, dims);
    return {};
  }
  std::string x = s.In(0).name;
  if (axis != rank - 1) {
    std::vector<int64_t> shape(static_cast<size_t>(axis), 0);
    shape.push_back(-1);
    x = s.Node("Reshape", {x, s.Vector(shape)});
  }
  if (!is_transposed) {
    weights = s.Node("Transpose", {weights}, {{"perm", std::vector<int64_t>{1, 0}}});
  }
  const std::string product = s.Node("MatMul", {x, weights});
  s.Return(s.Node("Add", {product, s.In(2).name}), s.In(0).type, dims);
  return {};
}

std::string SwapLast(Scope& s, const std::string& value, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return s.Node("Transpose", {value}, {{"perm", order}});
}

Error MatMul(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank_a, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t rank_b, s.Rank(1));
  NEREID_KIT_ASSIGN(const int64_t axis_a, s.Axis("axis_a", 1, rank_a));
  NEREID_KIT_ASSIGN(const int64_t axis_b, s.Axis("axis_b", 1, rank_b));
  const auto matrix = [&](size_t i, int64_t rank, int64_t axis) {
    return rank == 2 && axis == 1 ? s.In(i).name
                                  : s.Node("Flatten", {s.In(i).name}, {{"axis", axis}});
  };
  const bool turn_a = s.Flag("trans_a", false);
  const bool turn_b = s.Flag("trans_b", false);
  const std::string a = matrix(0, rank_a, axis_a);
  const std::string b = matrix(1, rank_b, axis_b);
  const auto side = [&](size_t i, int64_t rank, bool second) {
    return rank == 2 ? (*s.In(i).dims)[second ? 1 : 0] : -1;
  };
  s.Return(s.Node("Gemm", {a, b},
                  {{"transA", int64_t{turn_a ? 1 : 0}}, {"transB", int64_t{turn_b ? 1 : 0}}}),
           s.In(0).type, Dims{side(0, rank_a, turn_a), side(1, rank_b, !turn_b)});
  return {};
}

Error BatchMatMul(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank_a, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t rank_b, s.Rank(1));
  const bool turn_a = s.Flag("trans_a", false) && rank_a > 1;
  const bool turn_b = s.Flag("trans_b", false) && rank_b > 1;
  const std::string a = turn_a ? SwapLast(s, s.In(0).name, rank_a) : s.In(0).name;
  const std::string b = turn_b ? SwapLast(s, s.In(1).name, rank_b) : s.In(1).name;
  int64_t rank = std::max(rank_a, rank_b);
  if (rank_a == 1 || rank_b == 1) {
    rank = std::max(rank_a, rank_b) - 1;
  }
  Dims dims = AnyDims(std::max<int64_t>(rank, 0));
  if (rank_a > 1 && rank_b > 1) {
    const Dims batch_a(s.In(0).dims->begin(), s.In(0).dims->end() - 2);
    const Dims batch_b(s.In(1).dims->begin(), s.In(1).dims->end() - 2);
    dims = *Broadcast(batch_a, batch_b);
    dims.push_back((*s.In(0).dims)[static_cast<size_t>(turn_a ? rank_a - 1 : rank_a - 2)]);
    dims.push_back((*s.In(1).dims)[static_cast<size_t>(turn_b ? rank_b - 2 : rank_b - 1)]);
  }
  s.Return(s.Node("MatMul", {a, b}), s.In(0).type, dims);
  return {};
}

// The product of two vectors for each row.
Error DotProduct(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank < 1) {
    return s.Refuse("has an input without dimensions");
  }
  std::string product = s.Node("Mul", {s.In(0).name, s.In(1).name});
  if (rank > 1) {
    product = s.Node("ReduceSum", {s.Node("Flatten", {product}, {{"axis", int64_t{1}}})},
                     {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  }
  s.Return(product, s.In(0).type, Front(s.In(0), 1));
  return {};
}

// Y = X w + b, with a factor and a summand for each element of a row, which begins at `axis`.
Error ElementwiseLinear(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", 1, rank));
  std::string x = s.In(0).name;
  if (axis != rank - 1) {
    x = s.Node("Flatten", {x}, {{"axis", axis}});
  }
  std::string result = s.Node("Add", {s.Node("Mul", {x, s.In(1).name}), s.In(2).name});
  if (axis != rank - 1) {
    result = s.Node("Reshape", {result, ShapeOf(s, s.In(0).name)});
  }
  s.Return(result, s.In(0).type, s.In(0).dims);
  return {};
}

// The dimensions that are left when `axes` are reduced.
Dims Reduced(const Dims& dims, const std::vector<int64_t>& axes, bool keeps) {
  Dims left;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool is_gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!is_gone) {
      left.push_back(dims[d]);
    } else if (keeps) {
      left.push_back(1);
    }
  }
  return left;
}

Error ReduceAxes(Scope& s, std::vector<int64_t> axes, bool keeps) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) {
      return s.Refuse("reduces dimension ", axis, " of an input with ", rank);
    }
    axis += axis < 0 ? rank : 0;
  }
  if (axes.empty()) {
    s.Set(0, s.In(0));
    return {};
  }
  s.Return(
      s.Node(s.target(), {s.In(0).name}, {{"axes", axes}, {"keepdims", int64_t{keeps ? 1 : 0}}}),
      s.In(0).type, Reduced(*s.In(0).dims, axes, keeps));
  return {};
}

std::vector<int64_t> AllFrom(int64_t begin, int64_t end) {
  std::vector<int64_t> axes;
  for (int64_t d = begin; d < end; ++d) {
    axes.push_back(d);
  }
  return axes;
}

Error Reduce(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  std::vector<int64_t> axes = s.Ints("axes");
  if (axes.empty()) {
    axes = AllFrom(0, rank);
  }
  return ReduceAxes(s, std::move(axes), s.Flag("keepdims", true));
}

// Reduces the first or last dimensions, `num_reduce_dim` of them.
Error ReduceSide(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (s.inputs() > 1) {
    return s.Refuse("reduces by lengths, which has no translation to ONNX");
  }
  const int64_t count = s.Int("num_reduce_dim", s.Int("num_reduce_dims", 1));
  if (count < 0 || count > rank) {
    return s.Refuse("reduces ", count, " dimensions of an input with ", rank);
  }
  const bool is_front = s.type().starts_with("ReduceFront");
  return ReduceAxes(s, is_front ? AllFrom(0, count) : AllFrom(rank - count, rank), false);
}

// One number from all elements.
Error SumElements(Scope& s) {
  std::string x = s.In(0).name;
  if (s.type() == "SumSqrElements") {
    x = s.Node("Mul", {x, x});
  }
  const bool is_average = s.Flag("average", false);
  s.Return(s.Node(is_average ? "ReduceMean" : "ReduceSum", {x}, {{"keepdims", int64_t{0}}}),
           s.In(0).type, Dims());
  return {};
}

template <int64_t kAxis>
Error MaxAlong(Scope& s) {
  return ReduceAxes(s, {kAxis}, false);
}

Error ArgReduce(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", -1, rank));
  const bool keeps = s.Flag("keepdims", true);
  s.Return(
      s.Node(s.target(), {s.In(0).name}, {{"axis", axis}, {"keepdims", int64_t{keeps ? 1 : 0}}}),
      Element::kInt64, Reduced(*s.In(0).dims, {axis}, keeps));
  return {};
}

Error TopK(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", -1, rank));
  const int64_t k = s.Int("k", -1);
  if (s.inputs() > 1 || k < 1) {
    return s.Refuse("takes k from an input or has none, which has no translation to ONNX");
  }
  const std::string size = ShapeOf(s, s.In(0).name, axis, axis + 1);
  const std::string most = s.Node("Min", {size, s.Vector({k})});
  std::vector<std::string> results = s.Nodes("TopK", {s.In(0).name, most}, {{"axis", axis}}, 2);
  Dims dims = *s.In(0).dims;
  int64_t& dim = dims[static_cast<size_t>(axis)];
  if (dim < k) {
    // The places behind have the value 0 and the index -1.
    std::vector<int64_t> before(static_cast<size_t>(rank), 0);
    std::vector<int64_t> behind(static_cast<size_t>(rank - axis - 1), 0);
    before.insert(before.end(), static_cast<size_t>(axis), 0);
    const std::string missing = s.Node("Sub", {s.Vector({k}), most});
    const std::string pads =
        s.Node("Concat", {s.Vector(before), missing, s.Vector(behind)}, {{"axis", int64_t{0}}});
    results[0] = s.Node("Pad", {results[0], pads, s.Scalar(0.0, s.In(0).type)});
    results[1] = s.Node("Pad", {results[1], pads, s.Scalar(int64_t{-1})});
  }
  dim = k;
  s.Return(results[0], s.In(0).type, dims);
  if (s.outputs() > 1) {
    s.Set(1, {.name = results[1], .type = Element::kInt64, .dims = dims});
  }
  return {};
}

constexpr Translation kTable[] = {
    {"ArgMax", 1, 1, ArgReduce, "ArgMax"},
    {"ArgMin", 1, 1, ArgReduce, "ArgMin"},
    {"BatchMatMul", 2, 2, BatchMatMul},
    {"ColwiseMax", 1, 1, MaxAlong<-2>, "ReduceMax"},
    {"DotProduct", 2, 2, DotProduct},
    {"ElementwiseLinear", 3, 3, ElementwiseLinear},
    {"FC", 3, 3, FullyConnected},
    {"FCTransposed", 3, 3, FullyConnected},
    {"MatMul", 2, 2, MatMul},
    {"ReduceBackMax", 1, 2, ReduceSide, "ReduceMax"},
    {"ReduceBackMean", 1, 2, ReduceSide, "ReduceMean"},
    {"ReduceBackSum", 1, 2, ReduceSide, "ReduceSum"},
    {"ReduceFrontMax", 1, 2, ReduceSide, "ReduceMax"},
    {"ReduceFrontMean", 1, 2, ReduceSide, "ReduceMean"},
    {"ReduceFrontSum", 1, 2, ReduceSide, "ReduceSum"},
    {"ReduceL1", 1, 1, Reduce, "ReduceL1"},
    {"ReduceL2", 1, 1, Reduce, "ReduceL2"},
    {"ReduceMax", 1, 1, Reduce, "ReduceMax"},
    {"ReduceMean", 1, 1, Reduce, "ReduceMean"},
    {"ReduceMin", 1, 1, Reduce, "ReduceMin"},
    {"ReduceSum", 1, 1, Reduce, "ReduceSum"},
    {"RowwiseMax", 1, 1, MaxAlong<-1>, "ReduceMax"},
    {"SumElements", 1, 1, SumElements},
    {"SumSqrElements", 1, 1, SumElements},
    {"TopK", 1, 2, TopK},
};

}  // namespace

std::span<const Translation> MatrixTranslations() { return kTable; }

}  // namespace nereid::caffe2
