// SPDX-License-Identifier: Apache-2.0
// Translations of operators that normalise: over the batch, over channels, over a row.
#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

constexpr const char* kTooFew = "has an input with too few dimensions";

// A tensor [C] with a dimension of 1 for each of `behind` dimensions of space, so that it spreads
// over them.
std::string PerChannel(Scope& s, const std::string& value, int64_t behind) {
  std::vector<int64_t> axes;
  for (int64_t d = 1; d <= behind; ++d) {
    axes.push_back(d);
  }
  return axes.empty() ? value : s.Node("Unsqueeze", {value}, {{"axes", axes}});
}

// A running value after this batch: old * momentum + new * (1 - momentum).
std::string Running(Scope& s, const std::string& old, const std::string& now) {
  const float momentum = s.Real("momentum", 0.9F);
  return s.Node("Add", {s.Node("Mul", {old, s.Scalar(momentum)}),
                        s.Node("Mul", {now, s.Scalar(1.0F - momentum)})});
}

// SpatialBN as in training: by mean and variance of this batch.
Error NormalizeByBatch(Scope& s, const std::string& x, int64_t rank, std::string* result) {
  if (s.Int("num_batches", 1) != 1) {
    return s.Refuse("has num_batches, which has no translation to ONNX");
  }
  std::vector<int64_t> axes{0};
  for (int64_t d = 2; d < rank; ++d) {
    axes.push_back(d);
  }
  const float epsilon = s.Real("epsilon", 1e-5F);
  const Attributes keep{{"axes", axes}, {"keepdims", int64_t{1}}};
  const std::string mean = s.Node("ReduceMean", {x}, keep);
  const std::string centred = s.Node("Sub", {x, mean});
  const std::string variance = s.Node("ReduceMean", {s.Node("Mul", {centred, centred})}, keep);
  const std::string deviation = s.Node("Sqrt", {s.Node("Add", {variance, s.Scalar(epsilon)})});
  const std::string normal = s.Node("Div", {centred, deviation});
  const std::string scaled = s.Node("Mul", {normal, PerChannel(s, s.In(1).name, rank - 2)});
  *result = s.Node("Add", {scaled, PerChannel(s, s.In(2).name, rank - 2)});
  const auto flat = [&s](const std::string& value) {
    return s.Node("Reshape", {value, s.Vector({-1})});
  };
  const std::string inverse = flat(s.Node("Reciprocal", {deviation}));
  const std::string flat_mean = flat(mean);
  const auto set = [&](size_t i, const std::string& value) {
    if (i < s.outputs()) {
      s.Set(i, {.name = value, .type = Element::kFloat, .dims = s.In(1).dims});
    }
  };
  if (s.inputs() == 5) {
    // The running variance is that of a sample: divided by one less than the number of elements.
    const std::string size = s.Cast(s.Node("Size", {x}), Element::kInt64, Element::kFloat);
    const std::string channels =
        s.Cast(s.Node("Size", {flat_mean}), Element::kInt64, Element::kFloat);
    const std::string count = s.Node("Div", {size, channels});
    const std::string unbiased =
        s.Node("Div", {s.Node("Mul", {flat(variance), count}),
                       s.Node("Max", {s.Node("Sub", {count, s.Scalar(1.0F)}), s.Scalar(1.0F)})});
    set(1, Running(s, s.In(3).name, flat_mean));
    set(2, Running(s, s.In(4).name, unbiased));
  }
  set(3, flat_mean);
  set(4, inverse);
  return {};
}

Error SpatialBn(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank < 2) {
    return s.Refuse(kTooFew);
  }
  const bool channels_last = IsChannelsLast(s) && rank > 2;
  const std::string x = channels_last ? ToChannelsFirst(s, s.In(0).name, rank) : s.In(0).name;
  std::string result;
  if (s.Flag("is_test", false)) {
    if (s.inputs() != 5) {
      return s.Refuse("has ", s.inputs(), " inputs, where is_test needs 5");
    }
    std::vector<std::string> inputs{x};
    for (size_t i = 1; i < 5; ++i) {
      inputs.push_back(s.In(i).name);
    }
    result = s.Node("BatchNormalization", inputs, {{"epsilon", s.Real("epsilon", 1e-5F)}});
  } else {
    NEREID_KIT_TRY(NormalizeByBatch(s, x, rank, &result));
  }
  s.Return(channels_last ? ToChannelsLast(s, result, rank) : result, s.In(0).type, s.In(0).dims);
  return {};
}

Error InstanceNorm(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank < 3) {
    return s.Refuse(kTooFew);
  }
  const bool channels_last = IsChannelsLast(s);
  const std::string x = channels_last ? ToChannelsFirst(s, s.In(0).name, rank) : s.In(0).name;
  const std::string result = s.Node("InstanceNormalization", {x, s.In(1).name, s.In(2).name},
                                    {{"epsilon", s.Real("epsilon", 1e-5F)}});
  s.Return(channels_last ? ToChannelsLast(s, result, rank) : result, s.In(0).type, s.In(0).dims);
  return {};
}

Error AffineChannel(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank < 2) {
    return s.Refuse(kTooFew);
  }
  const int64_t behind = IsChannelsLast(s) ? 0 : rank - 2;
  const std::string scaled = s.Node("Mul", {s.In(0).name, PerChannel(s, s.In(1).name, behind)});
  s.Return(s.Node("Add", {scaled, PerChannel(s, s.In(2).name, behind)}), s.In(0).type,
           s.In(0).dims);
  return {};
}

Error Lrn(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  const int64_t size = s.Int("size", 0);
  if (rank < 3 || size < 1 || size % 2 == 0) {
    return s.Refuse("has the size ", size, " for an input of ", rank, " dimensions");
  }
  const bool channels_last = IsChannelsLast(s);
  const std::string x = channels_last ? ToChannelsFirst(s, s.In(0).name, rank) : s.In(0).name;
  const Attributes attributes{{"size", size},
                              {"alpha", s.Real("alpha", 0.0F)},
                              {"beta", s.Real("beta", 0.0F)},
                              {"bias", s.Real("bias", 1.0F)}};
  const std::string result = s.Node("LRN", {x}, attributes);
  s.Return(channels_last ? ToChannelsLast(s, result, rank) : result, s.In(0).type, s.In(0).dims);
  return {};
}

// ONNX's Softmax of this version takes everything from `axis` on as one row, as Caffe2's does.
Error Softmax(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", 1, rank));
  s.Return(s.Node(s.target(), {s.In(0).name}, {{"axis", axis}}), s.In(0).type, s.In(0).dims);
  return {};
}

// Divides by the length along one dimension, which is at least 1e-12.
Error Normalize(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", -1, rank));
  const std::string length =
      s.Node(s.type() == "NormalizeL1" ? "ReduceL1" : "ReduceL2", {s.In(0).name},
             {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}});
  const std::string divisor = s.Node("Max", {length, s.Scalar(1e-12F)});
  s.Return(s.Node("Div", {s.In(0).name, divisor}), s.In(0).type, s.In(0).dims);
  return {};
}

// Normalises everything from `axis` on; the second and third results are mean and deviation.
Error LayerNorm(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  NEREID_KIT_ASSIGN(const int64_t axis, s.Axis("axis", 1, rank));
  std::vector<int64_t> axes;
  for (int64_t d = axis; d < rank; ++d) {
    axes.push_back(d);
  }
  const Attributes keep{{"axes", axes}, {"keepdims", int64_t{1}}};
  const std::string& x = s.In(0).name;
  const std::string mean = s.Node("ReduceMean", {x}, keep);
  const std::string centred = s.Node("Sub", {x, mean});
  const std::string variance = s.Node("ReduceMean", {s.Node("Mul", {centred, centred})}, keep);
  const std::string deviation =
      s.Node("Sqrt", {s.Node("Add", {variance, s.Scalar(s.Real("epsilon", 1e-5F))})});
  std::string result = s.Node("Div", {centred, deviation});
  if (s.Flag("elementwise_affine", false)) {
    if (s.inputs() < 3) {
      return s.Refuse("has no gamma and beta, though elementwise_affine is set");
    }
    result = s.Node("Add", {s.Node("Mul", {result, s.In(1).name}), s.In(2).name});
  }
  s.Return(result, s.In(0).type, s.In(0).dims);
  Dims reduced(s.In(0).dims->begin(), s.In(0).dims->begin() + axis);
  reduced.push_back(1);
  const std::string shape =
      s.Node("Concat", {ShapeOf(s, x, 0, axis), s.Vector({1})}, {{"axis", int64_t{0}}});
  for (size_t o = 1; o < s.outputs() && o < 3; ++o) {
    s.Set(o, {.name = s.Node("Reshape", {o == 1 ? mean : deviation, shape}),
              .type = s.In(0).type,
              .dims = reduced});
  }
  return {};
}

constexpr Translation kTable[] = {
    {"AffineChannel", 3, 3, AffineChannel}, {"InstanceNorm", 3, 3, InstanceNorm},
    {"LayerNorm", 1, 3, LayerNorm},         {"LRN", 1, 1, Lrn},
    {"Normalize", 1, 1, Normalize},         {"NormalizeL1", 1, 1, Normalize},
    {"Softmax", 1, 1, Softmax, "Softmax"},  {"SpatialBN", 3, 5, SpatialBn},
};

}  // namespace

std::span<const Translation> NormalizationTranslations() { return kTable; }

}  // namespace nereid::caffe2
