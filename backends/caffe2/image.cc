// SPDX-License-Identifier: Apache-2.0
// Translations of operators that rearrange the pixels or the channels of images.
#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

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
  s.Return(channels_last ? ToChannelsLast(s, result, rank) : result, s.In(0).type,
           ImageDims(s.In(0), channels_last));
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

constexpr Translation kTable[] = {
    {"ChannelShuffle", 1, 1, ChannelShuffle},
    {"ResizeNearest", 1, 2, Resize},
    {"UpsampleBilinear", 1, 2, Resize},
    {"UpsampleNearest", 1, 1, Resize},
};

}  // namespace

std::span<const Translation> ImageTranslations() { return kTable; }

}  // namespace nereid::caffe2
