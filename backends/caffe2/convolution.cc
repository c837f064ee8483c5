// SPDX-License-Identifier: Apache-2.0
// Translations of convolutions and poolings, whose windows Caffe2 describes in several ways.
#include <algorithm>

#include "caffe2_backend/scope.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;

namespace {

// The values of argument legacy_pad.
enum LegacyPad : int64_t { kNotSet = 0, kValid = 1, kSame = 2, kCaffePooling = 3 };

// The window of a convolution or pooling: one entry for each dimension of space, for pads two.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;
  int64_t legacy_pad = kNotSet;

  Attributes ToAttributes() const {
    Attributes attributes{{"kernel_shape", kernel}, {"strides", strides}};
    if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; })) {
      attributes.push_back({"dilations", dilations});
    }
    if (legacy_pad == kSame) {
      attributes.push_back({"auto_pad", std::string("SAME_UPPER")});
    } else if (legacy_pad != kValid) {
      attributes.push_back({"pads", pads});
    }
    if (legacy_pad == kCaffePooling) {
      attributes.push_back({"ceil_mode", int64_t{1}});
    }
    return attributes;
  }
};

// Reads kernels, strides or dilations: the list `plural`, one number `singular` for both sides, or
// one number for height and one for width.
std::vector<int64_t> Sizes(const Scope& s, const std::string& singular) {
  std::vector<int64_t> sizes = s.Ints(singular + "s");
  if (!sizes.empty()) {
    return sizes;
  }
  if (s.Has(singular)) {
    const int64_t size = s.Int(singular, 0);
    return {size, size};
  }
  if (s.Has(singular + "_h") && s.Has(singular + "_w")) {
    return {s.Int(singular + "_h", 0), s.Int(singular + "_w", 0)};
  }
  return {};
}

std::vector<int64_t> Pads(const Scope& s) {
  std::vector<int64_t> pads = s.Ints("pads");
  if (!pads.empty()) {
    return pads;
  }
  if (s.Has("pad")) {
    return std::vector<int64_t>(4, s.Int("pad", 0));
  }
  if (s.Has("pad_t") && s.Has("pad_l") && s.Has("pad_b") && s.Has("pad_r")) {
    return {s.Int("pad_t", 0), s.Int("pad_l", 0), s.Int("pad_b", 0), s.Int("pad_r", 0)};
  }
  return {};
}

bool AreWithin(const std::vector<int64_t>& values, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return std::all_of(values.begin(), values.end(),
                     [least](int64_t value) { return value >= least && value <= kMost; });
}

// Reads the window for a tensor with `space` dimensions besides the batch and the channels.
Result<Window> ReadWindow(const Scope& s, int64_t space) {
  const auto count = static_cast<size_t>(space);
  Window window{.kernel = Sizes(s, "kernel"),
                .strides = Sizes(s, "stride"),
                .dilations = Sizes(s, "dilation"),
                .pads = Pads(s),
                .legacy_pad = s.Int("legacy_pad", kNotSet)};
  if (window.strides.empty()) {
    window.strides.assign(count, 1);
  }
  if (window.dilations.empty()) {
    window.dilations.assign(count, 1);
  }
  if (window.pads.empty()) {
    window.pads.assign(2 * count, 0);
  }
  if (window.kernel.size() != count || window.strides.size() != count ||
      window.dilations.size() != count || window.pads.size() != 2 * count) {
    return s.Refuse("has a window of ", window.kernel.size(), " dimensions, strides of ",
                    window.strides.size(), " and ", window.pads.size(), " pads for an input with ",
                    space, " dimensions of space");
  }
  if (!AreWithin(window.kernel, 1) || !AreWithin(window.strides, 1) ||
      !AreWithin(window.dilations, 1) || !AreWithin(window.pads, 0)) {
    return s.Refuse("has a window with impossible sizes");
  }
  if (window.legacy_pad < kNotSet || window.legacy_pad > kCaffePooling) {
    return s.Refuse("has the unknown legacy_pad ", window.legacy_pad);
  }
  return window;
}

// The dimensions of a result: batch and channels, the others unknown.
std::optional<Dims> ResultDims(const Value& x, int64_t rank, int64_t channels, bool channels_last) {
  Dims dims = AnyDims(rank);
  dims.front() = x.dims->front();
  (channels_last ? dims.back() : dims[1]) = channels;
  return dims;
}

Result<int64_t> SpaceRank(const Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank < 3) {
    return s.Refuse("has an input with ", rank, " dimensions, where at least 3 are needed");
  }
  return rank - 2;
}

// Convolutions forward and transposed; `transposed` has its output channels in the second dimension
// of the weights.
Error Convolve(Scope& s, bool transposed) {
  NEREID_KIT_ASSIGN(const int64_t space, SpaceRank(s));
  NEREID_KIT_ASSIGN(Window window, ReadWindow(s, space));
  NEREID_KIT_ASSIGN(const int64_t weight_rank, s.Rank(1));
  if (weight_rank != space + 2) {
    return s.Refuse("has weights of ", weight_rank, " dimensions for an input of ", space + 2);
  }
  const bool channels_last = IsChannelsLast(s);
  const int64_t group = s.Int("group", 1);
  Attributes attributes = window.ToAttributes();
  attributes.push_back({"group", group});
  if (window.legacy_pad == kCaffePooling || (transposed && window.legacy_pad == kSame)) {
    return s.Refuse("has legacy_pad ", window.legacy_pad, ", which has no translation to ONNX");
  }
  if (transposed) {
    std::vector<int64_t> extra = Sizes(s, "adj");
    if (!extra.empty()) {
      attributes.push_back({"output_padding", std::move(extra)});
    }
  }
  std::vector<std::string> inputs;
  for (size_t i = 0; i < s.inputs(); ++i) {
    inputs.push_back(channels_last && i < 2 ? ToChannelsFirst(s, s.In(i).name, space + 2)
                                            : s.In(i).name);
  }
  std::string result = s.Node(transposed ? "ConvTranspose" : "Conv", inputs, attributes);
  if (channels_last) {
    result = ToChannelsLast(s, result, space + 2);
  }
  const Dims& weights = *s.In(1).dims;
  int64_t channels = weights.front();
  if (transposed) {
    channels = channels_last ? weights.back() : weights[1];
    if (channels < 0 || __builtin_mul_overflow(channels, group, &channels)) {
      channels = -1;
    }
  }
  s.Return(result, s.In(0).type, ResultDims(s.In(0), space + 2, channels, channels_last));
  return {};
}

Error Conv(Scope& s) { return Convolve(s, false); }

Error ConvTranspose(Scope& s) { return Convolve(s, true); }

Error Pool(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t space, SpaceRank(s));
  const bool channels_last = IsChannelsLast(s);
  const bool is_average = s.target() == "AveragePool";
  std::string x = channels_last ? ToChannelsFirst(s, s.In(0).name, space + 2) : s.In(0).name;
  std::string result;
  if (s.Flag("global_pooling", false)) {
    result = s.Node(is_average ? "GlobalAveragePool" : "GlobalMaxPool", {x});
  } else {
    NEREID_KIT_ASSIGN(const Window window, ReadWindow(s, space));
    if (std::any_of(window.dilations.begin(), window.dilations.end(),
                    [](int64_t d) { return d != 1; })) {
      return s.Refuse("has dilations, which poolings do not have in Caffe2");
    }
    Attributes attributes = window.ToAttributes();
    if (is_average) {
      attributes.push_back({"count_include_pad", s.Int("count_include_pad", 0)});
    }
    result = s.Node(s.target(), {x}, attributes);
  }
  if (channels_last) {
    result = ToChannelsLast(s, result, space + 2);
  }
  const Dims& dims = *s.In(0).dims;
  s.Return(result, s.In(0).type,
           ResultDims(s.In(0), space + 2, channels_last ? dims.back() : dims[1], channels_last));
  return {};
}

// Repeats pixels: ResizeNearest by any scale, UpsampleNearest by a whole one.
Error Resize(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank != 4 || s.inputs() > 1) {
    return s.Refuse("has no translation to ONNX for an input of ", rank,
                    " dimensions or with scales in an input");
  }
  const bool channels_last = IsChannelsLast(s);
  float height = s.Real("height_scale", 1.0F);
  float width = s.Real("width_scale", 1.0F);
  if (s.type() == "UpsampleNearest") {
    height = width = static_cast<float>(s.Int("scale", 2));
  }
  if (!(height > 0.0F) || !(width > 0.0F)) {
    return s.Refuse("has scales that are not positive");
  }
  const bool is_bilinear = s.type() == "UpsampleBilinear";
  std::string x = channels_last ? ToChannelsFirst(s, s.In(0).name, rank) : s.In(0).name;
  const float scales[] = {1.0F, 1.0F, height, width};
  Constant constant{.type = Element::kFloat,
                    .dims = {4},
                    .bytes = std::string(reinterpret_cast<const char*>(scales), sizeof(scales)),
                    .texts = {}};
  Constant region{.type = Element::kFloat, .dims = {0}, .bytes = {}, .texts = {}};
  Attributes attributes{{"mode", std::string(is_bilinear ? "linear" : "nearest")},
                        {"nearest_mode", std::string("floor")},
                        {"coordinate_transformation_mode",
                         std::string(is_bilinear ? "align_corners" : "asymmetric")}};
  const std::string result =
      s.Node("Resize", {x, s.graph().Add(std::move(region)), s.graph().Add(std::move(constant))},
             attributes);
  const Dims& dims = *s.In(0).dims;
  s.Return(channels_last ? ToChannelsLast(s, result, rank) : result, s.In(0).type,
           ResultDims(s.In(0), rank, channels_last ? dims.back() : dims[1], channels_last));
  return {};
}

// Takes the channels of each group in turn.
Error ChannelShuffle(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  const int64_t group = s.Int("group", 1);
  if (rank < 3 || group < 1) {
    return s.Refuse("has ", group, " groups for an input of ", rank, " dimensions");
  }
  const bool channels_last = IsChannelsLast(s);
  const std::string x = channels_last ? s.In(0).name : ToChannelsLast(s, s.In(0).name, rank);
  // [..., C] → [N, ?, group, C / group] → [N, ?, C / group, group] → [..., C]
  const std::string flat_shape = s.Vector({0, -1, group});
  const std::string channels = ShapeOf(s, x, rank - 1);
  const std::string per_group = s.Node("Div", {channels, s.Vector({group})});
  const std::string shape = s.Node("Concat", {flat_shape, per_group}, {{"axis", int64_t{0}}});
  const std::string split = s.Node("Reshape", {x, shape});
  const std::string turned =
      s.Node("Transpose", {split}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const std::string result = s.Node("Reshape", {turned, ShapeOf(s, x)});
  s.Return(channels_last ? result : ToChannelsFirst(s, result, rank), s.In(0).type, s.In(0).dims);
  return {};
}

Error PadImage(Scope& s) {
  NEREID_KIT_ASSIGN(const int64_t rank, s.Rank(0));
  if (rank != 4) {
    return s.Refuse("has an input of ", rank, " dimensions, where 4 are needed");
  }
  const std::vector<int64_t> pads = Pads(s);
  if (pads.size() != 4 || !AreWithin(pads, 0)) {
    return s.Refuse("has impossible pads");
  }
  const bool channels_last = IsChannelsLast(s);
  const std::vector<int64_t> all =
      channels_last ? std::vector<int64_t>{0, pads[0], pads[1], 0, 0, pads[2], pads[3], 0}
                    : std::vector<int64_t>{0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3]};
  const std::string mode(s.Text("mode", "constant"));
  if (mode != "constant" && mode != "reflect" && mode != "edge") {
    return s.Refuse("has the unknown mode '", mode, "'");
  }
  const std::string result = s.Node(
      "Pad", {s.In(0).name, s.Vector(all), s.Scalar(s.Real("value", 0.0F))}, {{"mode", mode}});
  const Dims& dims = *s.In(0).dims;
  s.Return(result, s.In(0).type,
           ResultDims(s.In(0), rank, channels_last ? dims.back() : dims[1], channels_last));
  return {};
}

constexpr Translation kTable[] = {
    {"Conv", 2, 3, Conv},
    {"Conv1D", 2, 3, Conv},
    {"Conv2D", 2, 3, Conv},
    {"Conv3D", 2, 3, Conv},
    {"ConvTranspose", 2, 3, ConvTranspose},
    {"AveragePool", 1, 1, Pool, "AveragePool"},
    {"AveragePool1D", 1, 1, Pool, "AveragePool"},
    {"AveragePool2D", 1, 1, Pool, "AveragePool"},
    {"AveragePool3D", 1, 1, Pool, "AveragePool"},
    {"MaxPool", 1, 1, Pool, "MaxPool"},
    {"MaxPool1D", 1, 1, Pool, "MaxPool"},
    {"MaxPool2D", 1, 1, Pool, "MaxPool"},
    {"MaxPool3D", 1, 1, Pool, "MaxPool"},
    {"ChannelShuffle", 1, 1, ChannelShuffle},
    {"PadImage", 1, 1, PadImage},
    {"ResizeNearest", 1, 2, Resize},
    {"UpsampleBilinear", 1, 2, Resize},
    {"UpsampleNearest", 1, 1, Resize},
};

}  // namespace

std::span<const Translation> ConvolutionTranslations() { return kTable; }

}  // namespace nereid::caffe2
