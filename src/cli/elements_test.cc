// SPDX-License-Identifier: Apache-2.0
#include "cli/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/npy.h"

namespace nereid::cli {
namespace {

using tensor::DataType;
using testing::ElementsAre;

std::string Text(DataType type, std::string_view bytes, size_t limit = 10) {
  const auto text = ElementsText(type, bytes, limit);
  return text.ok() ? *text : "refused";
}

TEST(Elements, HalfPrecisionIsConvertedBothWays) {
  EXPECT_EQ(HalfToFloat(0x3C00), 1.0F);
  EXPECT_EQ(HalfToFloat(0xC000), -2.0F);
  EXPECT_EQ(HalfToFloat(0x0001), 0x1p-24F);
  EXPECT_EQ(HalfToFloat(0x0400), 0x1p-14F);
  EXPECT_EQ(HalfToFloat(0x7BFF), 65504.0F);
  EXPECT_TRUE(std::isinf(HalfToFloat(0x7C00)));
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7E00)));
  // Every half from 0 to 1.
  for (uint16_t half = 0; half <= 0x3C00; ++half) ASSERT_EQ(FloatToHalf(HalfToFloat(half)), half);
  EXPECT_EQ(FloatToHalf(0.99999F), 0x3C00);
}

TEST(Elements, NumbersHaveTheShortestDigitsOfTheirType) {
  const float values[] = {0.1F, 1, -2.5F, 1e-7F};
  EXPECT_EQ(Text(DataType::kFp32, {reinterpret_cast<const char*>(values), sizeof values}),
            "[0.1, 1.0, -2.5, 1e-07]");
  EXPECT_EQ(Text(DataType::kInt8, "\xFF\x01"), "[-1, 1]");
  EXPECT_EQ(Text(DataType::kBool, std::string_view("\0\1", 2)), "[false, true]");
}

TEST(Elements, OnlyAsManyAsWantedAreShown) {
  EXPECT_EQ(Text(DataType::kUint8, "\1\2\3", 2), "[1, 2, ... 1 more]");
  EXPECT_EQ(Text(DataType::kUint8, ""), "[]");
}

TEST(Elements, BytesThatAreNoWholeElementsAreRefused) {
  EXPECT_EQ(Text(DataType::kFp32, "123"), "refused");
  EXPECT_EQ(Text(DataType::kBytes, "123"), "refused");
  EXPECT_EQ(Text(DataType::kBytes, std::string_view("\5\0\0\0abc", 7)), "refused");
  EXPECT_EQ(Text(DataType::kInvalid, "1"), "refused");
}

TEST(Elements, TooMuchIsNotGenerated) {
  EXPECT_FALSE(GenerateElements(DataType::kFp32, int64_t{1} << 40, Filling::kZeros, 0).ok());
  EXPECT_FALSE(GenerateElements(DataType::kFp32, -1, Filling::kZeros, 0).ok());
}

TEST(Npy, WhatIsWrittenIsReadAgain) {
  std::string texts;
  AppendBytes(texts, "one");
  AppendBytes(texts, "");
  const auto file = WriteNpy(DataType::kBytes, {2, 1}, texts);
  ASSERT_TRUE(file.ok());
  const auto array = ReadNpy(*file);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->type, DataType::kBytes);
  EXPECT_THAT(array->shape, ElementsAre(2, 1));
  EXPECT_EQ(array->bytes, texts);

  const auto numbers = ReadNpy(*WriteNpy(DataType::kInt16, {2}, std::string_view("\1\0\2\0", 4)));
  ASSERT_TRUE(numbers.ok());
  EXPECT_THAT(numbers->shape, ElementsAre(2));
  EXPECT_EQ(numbers->bytes, std::string_view("\1\0\2\0", 4));
}

TEST(Npy, Bfloat16BecomesFp32) {
  const auto array = ReadNpy(*WriteNpy(DataType::kBf16, {1}, "\x80\x3F"));
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->type, DataType::kFp32);
  EXPECT_EQ(Text(array->type, array->bytes), "[1.0]");
}

TEST(Npy, FilesThatAreCutOffAnywhereAreRefused) {
  const std::string file = *WriteNpy(DataType::kInt16, {2}, std::string_view("\1\0\2\0", 4));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ReadNpy(std::string_view(file).substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace nereid::cli
