// SPDX-License-Identifier: Apache-2.0
// Translations of reductions, and of operators that pick the largest elements.
#include <algorithm>

#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

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
    {"ColwiseMax", 1, 1, MaxAlong<-2>, "ReduceMax"},
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

std::span<const Translation> ReductionTranslations() { return kTable; }

}  // namespace nereid::caffe2
