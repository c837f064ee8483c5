// SPDX-License-Identifier: Apache-2.0
#include "common/classification.h"

#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::common {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Classification, ListsLargestFirstWithLabels) {
  const std::array<float, 4> values{0.25f, 2.0f, -1.0f, 0.5f};
  const std::array<std::string, 2> labels{"cat", "dog"};
  const auto classes =
      TopClasses(std::as_bytes(std::span(values)), tensor::DataType::kFp32, 3, labels);
  EXPECT_THAT(*classes, ElementsAre("2.000000:1:dog", "0.500000:3", "0.250000:0:cat"));
}

TEST(Classification, ReturnsFewerWhenThereAreFewer) {
  const std::array<uint8_t, 2> values{7, 9};
  EXPECT_THAT(
      *TopClasses(std::as_bytes(std::span(values)), tensor::DataType::kUint8, 4'000'000'000, {}),
      ElementsAre("9:1", "7:0"));
  EXPECT_THAT(*TopClasses({}, tensor::DataType::kUint8, 5, {}), IsEmpty());
}

TEST(Classification, PutsNanLastAndTiesInIndexOrder) {
  const std::array<double, 4> values{std::nan(""), 1, 1, -3};
  EXPECT_THAT(*TopClasses(std::as_bytes(std::span(values)), tensor::DataType::kFp64, 4, {}),
              ElementsAre("1.000000:1", "1.000000:2", "-3.000000:3", testing::EndsWith("nan:0")));
}

TEST(Classification, RefusesTypesWithoutAnOrderAndHugeTensors) {
  EXPECT_EQ(TopClasses({}, tensor::DataType::kBytes, 1, {}).status().message(),
            "class result not available for output due to unsupported type 'BYTES'");
  const std::vector<std::byte> large(1'000'001);
  EXPECT_EQ(TopClasses(large, tensor::DataType::kInt8, 1, {}).status().message(),
            "classification output tensor too large");
}

}  // namespace
}  // namespace nereid::common
