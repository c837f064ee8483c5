// SPDX-License-Identifier: Apache-2.0
#include "tensor/data_type.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace nereid::tensor {
namespace {

TEST(DataType, EveryTypeHasNamesOfItsOwnAndASize) {
  std::set<std::string_view> names;
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_TRUE(names.insert(ProtocolName(type)).second) << i;
    EXPECT_TRUE(names.insert(ConfigName(type)).second) << i;
    EXPECT_TRUE(ConfigName(type).starts_with("TYPE_")) << i;
    EXPECT_EQ(FromProtocolName(ProtocolName(type)), type);
    EXPECT_EQ(ElementSize(type) == 0, type == DataType::kBytes) << i;
  }
  EXPECT_FALSE(names.contains(""));
}

TEST(DataType, UnknownNamesAndValuesHaveNoType) {
  EXPECT_EQ(FromProtocolName("fp32"), std::nullopt);
  EXPECT_EQ(FromProtocolName("<invalid>"), std::nullopt);
  EXPECT_EQ(ProtocolName(static_cast<DataType>(kDataTypeCount)), "<invalid>");
  EXPECT_EQ(ElementSize(DataType::kInvalid), 0u);
}

}  // namespace
}  // namespace nereid::tensor
