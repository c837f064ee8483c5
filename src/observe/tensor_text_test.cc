// SPDX-License-Identifier: Apache-2.0
#include "observe/tensor_text.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

using tensor::DataType;

template <typename T, typename... Values>
std::string Text(DataType type, Values... numbers) {
  const T values[] = {static_cast<T>(numbers)...};
  std::string bytes(sizeof(values), '\0');
  std::memcpy(bytes.data(), values, bytes.size());
  return DataText(type, bytes);
}

// Returns the element of BYTES with this text.
std::string Element(const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text;
}

TEST(DataText, ListsWholeNumbersOfEveryWidth) {
  EXPECT_EQ(Text<uint8_t>(DataType::kBool, 0, 1), "0,1");
  EXPECT_EQ(Text<uint8_t>(DataType::kUint8, 65, 255), "65,255");
  EXPECT_EQ(Text<int8_t>(DataType::kInt8, -128, 127), "-128,127");
  EXPECT_EQ(Text<uint16_t>(DataType::kUint16, 65535), "65535");
  EXPECT_EQ(Text<int16_t>(DataType::kInt16, -32768), "-32768");
  EXPECT_EQ(Text<uint32_t>(DataType::kUint32, 4294967295), "4294967295");
  EXPECT_EQ(Text<int32_t>(DataType::kInt32, -7), "-7");
  EXPECT_EQ(Text<uint64_t>(DataType::kUint64, UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(Text<int64_t>(DataType::kInt64, INT64_MIN), "-9223372036854775808");
}

TEST(DataText, ListsFloatsWithSixDigits) {
  EXPECT_EQ(Text<float>(DataType::kFp32, 0.5F, 1e10F, -3.14159265F), "0.5,1e+10,-3.14159");
  EXPECT_EQ(Text<double>(DataType::kFp64, INFINITY, NAN), "inf,nan");
}

TEST(DataText, PutsTextsInQuotes) {
  EXPECT_EQ(DataText(DataType::kBytes, Element("a") + Element("") + Element("bc")),
            R"("a","","bc")");
}

TEST(DataText, EndsWhereTheBytesDo) {
  EXPECT_EQ(DataText(DataType::kInt32, std::string_view("\1\0\0\0\2\0", 6)), "1");
  EXPECT_EQ(DataText(DataType::kBytes, Element("a") + std::string("\xff\0\0\0b", 5)), "\"a\"");
  EXPECT_EQ(DataText(DataType::kBytes, "ab"), "");
  EXPECT_EQ(DataText(DataType::kFp32, ""), "");
}

TEST(DataText, IsEmptyForFloatsOf16Bits) {
  EXPECT_EQ(DataText(DataType::kFp16, "ab"), "");
  EXPECT_EQ(DataText(DataType::kBf16, "ab"), "");
}

}  // namespace
}  // namespace nereid::observe
