// SPDX-License-Identifier: Apache-2.0
// Translations of operators that change the order of the dimensions.
#include <algorithm>

#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;

namespace {

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

constexpr Translation kTable[] = {
    {"NCHW2NHWC", 1, 1, ChangeOrder},
    {"NHWC2NCHW", 1, 1, ChangeOrder},
    {"Transpose", 1, 1, Transpose},
};

}  // namespace

std::span<const Translation> OrderTranslations() { return kTable; }

}  // namespace nereid::caffe2
