// SPDX-License-Identifier: Apache-2.0
#include "core/reshape.h"

#include <gtest/gtest.h>

namespace nereid::core {
namespace {

using tensor::Shape;

constexpr int64_t kAny = tensor::kWildcard;

ModelTensor Output(Shape dims, Shape model_dims) {
  ModelTensor output;
  output.name = "OUT";
  output.dims = dims;
  output.model_dims = model_dims;
  return output;
}

// Returns the shape that clients see, or why there is none.
std::string Seen(const ModelTensor& output, bool batches, Shape shape) {
  const base::Status status = ReshapeForClient(output, batches, shape);
  return status.ok() ? tensor::ToString(shape) : std::string(status.message());
}

TEST(ReshapeForClient, GivesTheDimsOfTheConfiguration) {
  EXPECT_EQ(Seen(Output({2, 3}, {6}), false, {6}), "[2,3]");
  EXPECT_EQ(Seen(Output({}, {1}), false, {1}), "[]");
  EXPECT_EQ(Seen(Output({1, 1}, {}), false, {}), "[1,1]");
}

TEST(ReshapeForClient, LeavesTheBatchInFront) {
  EXPECT_EQ(Seen(Output({2, 3}, {6}), true, {8, 6}), "[8,2,3]");
  EXPECT_EQ(Seen(Output({1}, {}), true, {8}), "[8,1]");
}

TEST(ReshapeForClient, FillsVariableDimensionsInTheirOrder) {
  EXPECT_EQ(Seen(Output({kAny, 1, kAny}, {kAny, kAny}), false, {5, 7}), "[5,1,7]");
  EXPECT_EQ(Seen(Output({kAny, kAny}, {kAny, 4, kAny}), true, {2, 5, 4, 7}), "[2,5,7]");
}

TEST(ReshapeForClient, RefusesShapesOfAnotherRank) {
  EXPECT_EQ(Seen(Output({2, 3}, {6}), true, {6}),
            "unexpected shape [6] for output 'OUT', expecting 2 dimensions");
  EXPECT_EQ(Seen(Output({2, 3}, {6}), false, {1, 6}),
            "unexpected shape [1,6] for output 'OUT', expecting 1 dimensions");
}

TEST(ReshapeForClient, RefusesMoreVariableDimensionsThanTheModelHas) {
  EXPECT_EQ(Seen(Output({kAny, kAny}, {kAny}), false, {6}),
            "reshape of output 'OUT' has more variable dimensions than the model");
}

}  // namespace
}  // namespace nereid::core
