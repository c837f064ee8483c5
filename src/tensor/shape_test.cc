// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace nereid::tensor {
namespace {

TEST(Shape, GrowsPastItsInlineRankAndComparesByValue) {
  Shape grown;
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < 12; ++i) {
    grown.PushBack(i);
    dims.push_back(i);
  }
  EXPECT_EQ(grown, Shape(std::span<const int64_t>(dims)));
  // What was moved is empty.
  Shape& source = grown;
  const Shape moved = std::move(source);
  EXPECT_EQ(moved.rank(), 12u);
  EXPECT_EQ(grown.rank(), 0u);
  EXPECT_EQ(ToString(Shape{1, -1, 16}), "[1,-1,16]");
}

TEST(Shape, CountsElementsWithoutOverflowing) {
  constexpr int64_t kHuge = int64_t{1} << 31;
  EXPECT_EQ(ElementCount(Shape{}.dims()), 1);
  EXPECT_EQ(ElementCount(Shape{3, 0, 4}.dims()), 0);
  EXPECT_EQ(ElementCount(Shape{2, -1}.dims()), std::nullopt);
  EXPECT_EQ(ElementCount(Shape{kHuge, kHuge, 4}.dims()), std::nullopt);
  EXPECT_EQ(ByteSize(DataType::kFp64, Shape{kHuge, kHuge}.dims()), std::nullopt);
  EXPECT_EQ(ByteSize(DataType::kFp16, Shape{3, 5}.dims()), 30u);
  EXPECT_EQ(ByteSize(DataType::kBytes, Shape{3}.dims()), std::nullopt);
  EXPECT_EQ(ElementCount(Shape{std::numeric_limits<int64_t>::max(), 0}.dims()), 0);
}

TEST(DataType, NamesRoundTrip) {
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(FromProtocolName(ProtocolName(type)), type);
  }
  EXPECT_EQ(FromProtocolName("fp32"), std::nullopt);
  EXPECT_EQ(FromProtocolName("<invalid>"), std::nullopt);
  EXPECT_EQ(ConfigName(DataType::kBytes), "TYPE_STRING");
}

}  // namespace
}  // namespace nereid::tensor
