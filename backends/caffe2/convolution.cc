// SPDX-License-Identifier: Apache-2.0
// Translations of convolutions, poolings and pads, whose windows Caffe2 describes in several ways.
#include <algorithm>

#include "caffe2_backend/tables.h"

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
  constexpr int64_t kMax = int64_t{1} << 30;
  return std::all_of(values.begin(), values.end(),
                     [least](int64_t value) { return value >= least && value <= kMax; });
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
  Dims dims = ImageDims(s.In(0), channels_last);
  (channels_last ? dims.back() : dims[1]) = channels;
  s.Return(result, s.In(0).type, dims);
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
  s.Return(result, s.In(0).type, ImageDims(s.In(0), channels_last));
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
  s.Return(result, s.In(0).type, ImageDims(s.In(0), channels_last));
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
    {"PadImage", 1, 1, PadImage},
};

}  // namespace

std::span<const Translation> ConvolutionTranslations() { return kTable; }

}  // namespace nereid::caffe2
