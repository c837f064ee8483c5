// SPDX-License-Identifier: Apache-2.0
// Translations of products of matrices and vectors.
#include <algorithm>
#include <numeric>

#include "caffe2_backend/tables.h"

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

constexpr Translation kTable[] = {
    {"BatchMatMul", 2, 2, BatchMatMul},
    {"DotProduct", 2, 2, DotProduct},
    {"ElementwiseLinear", 3, 3, ElementwiseLinear},
    {"FC", 3, 3, FullyConnected},
    {"FCTransposed", 3, 3, FullyConnected},
    {"MatMul", 2, 2, MatMul},
};

}  // namespace

std::span<const Translation> MatrixTranslations() { return kTable; }

}  // namespace nereid::caffe2
