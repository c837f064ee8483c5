// SPDX-License-Identifier: Apache-2.0
#include "engine/response_compare.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

template <typename T>
ResponseCopy CopyOf(tensor::DataType type, const std::vector<T>& values) {
  static std::vector<std::vector<T>> kept;
  const std::vector<T>& own = kept.emplace_back(values);
  return {{.name = "OUT",
           .type = type,
           .shape = {static_cast<int64_t>(values.size())},
           .data = std::as_bytes(std::span(own)),
           .buffer = {}}};
}

bool AreEqual(const ResponseCopy& a, const ResponseCopy& b, double tolerance = 1e-5) {
  return Difference(a, b, tolerance).empty();
}

ResponseCopy Floats(const std::vector<float>& values) {
  return CopyOf(tensor::DataType::kFp32, values);
}

TEST(Difference, FloatsMayDifferByTheTolerance) {
  EXPECT_TRUE(AreEqual(Floats({1, 2}), Floats({1, 2.00001f})));
  EXPECT_FALSE(AreEqual(Floats({1, 2}), Floats({1, 2.0001f})));
  EXPECT_TRUE(AreEqual(Floats({1e6f}), Floats({1e6f + 1})));
  EXPECT_TRUE(AreEqual(Floats({NAN}), Floats({NAN})));
  EXPECT_FALSE(AreEqual(Floats({NAN}), Floats({1})));
  EXPECT_FALSE(AreEqual(Floats({INFINITY}), Floats({-INFINITY}), 1e9));
  EXPECT_EQ(Difference(Floats({1}), Floats({2}), 0.1), "the data of output 'OUT' differ");
}

TEST(Difference, IntegersMayDifferByTheTolerance) {
  const auto integers = [](std::vector<int64_t> values) {
    return CopyOf(tensor::DataType::kInt64, values);
  };
  EXPECT_FALSE(AreEqual(integers({1'000'000}), integers({1'000'001})));
  EXPECT_TRUE(AreEqual(integers({1'000'000}), integers({1'000'001}), 1));
  EXPECT_FALSE(AreEqual(integers({INT64_MIN}), integers({INT64_MAX}), 1));
}

TEST(Difference, NumbersOf16BitsAreReadAsWhatTheyAre) {
  const auto halves = [](std::vector<uint16_t> values) {
    return CopyOf(tensor::DataType::kFp16, values);
  };
  EXPECT_TRUE(AreEqual(halves({0x3C00}), halves({0x3C01}), 0.001));  // 1 and 1.00098
  EXPECT_FALSE(AreEqual(halves({0x3C00}), halves({0x3C01}), 0.0001));
  EXPECT_TRUE(AreEqual(halves({0x0000}), halves({0x8000})));  // 0 and -0
  const auto brains = [](std::vector<uint16_t> values) {
    return CopyOf(tensor::DataType::kBf16, values);
  };
  EXPECT_TRUE(AreEqual(brains({0x3F80}), brains({0x3F81}), 0.01));  // 1 and 1.0078
  EXPECT_FALSE(AreEqual(brains({0x3F80}), brains({0x3F81}), 0.001));
}

TEST(Difference, TextsAndTruthsAreEqualOrNot) {
  const auto bytes = [](std::vector<char> values) {
    return CopyOf(tensor::DataType::kBytes, values);
  };
  EXPECT_TRUE(AreEqual(bytes({1, 0, 0, 0, 'a'}), bytes({1, 0, 0, 0, 'a'})));
  EXPECT_FALSE(AreEqual(bytes({1, 0, 0, 0, 'a'}), bytes({1, 0, 0, 0, 'b'}), 100));
  const auto truths = [](std::vector<uint8_t> values) {
    return CopyOf(tensor::DataType::kBool, values);
  };
  EXPECT_FALSE(AreEqual(truths({0}), truths({1}), 100));
}

TEST(Difference, SaysWhatElseDiffers) {
  ResponseCopy renamed = Floats({1});
  renamed[0].name = "OTHER";
  EXPECT_EQ(Difference(Floats({1}), renamed, 0), "only one has output 'OUT'");
  ResponseCopy reshaped = Floats({1});
  reshaped[0].shape = {1, 1};
  EXPECT_EQ(Difference(Floats({1}), reshaped, 0), "output 'OUT' has the shapes [1] and [1,1]");
  EXPECT_EQ(Difference(Floats({1}), CopyOf<int32_t>(tensor::DataType::kInt32, {1}), 0),
            "output 'OUT' is FP32 and INT32");
  EXPECT_EQ(Difference(Floats({1}), {}, 0), "1 outputs and 0");
}

}  // namespace
}  // namespace nereid::engine
