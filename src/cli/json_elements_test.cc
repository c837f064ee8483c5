// SPDX-License-Identifier: Apache-2.0
#include "cli/json_elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/elements.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

using tensor::DataType;

base::Result<std::string> Bytes(DataType type, std::string_view json) {
  rapidjson::Document document;
  EXPECT_TRUE(ParseJson(json, document)) << json;
  return BytesOfJson(type, document);
}

// The elements of JSON after the way through bytes; "refused" if a value does not fit.
std::string Through(DataType type, std::string_view json) {
  const auto bytes = Bytes(type, json);
  return bytes.ok() ? *ElementsText(type, *bytes, 100) : "refused";
}

uint16_t Half(std::string_view json, DataType type = DataType::kFp16) {
  const auto bytes = Bytes(type, json);
  EXPECT_TRUE(bytes.ok()) << json;
  uint16_t half = 0;
  if (bytes.ok()) std::memcpy(&half, bytes->data(), sizeof half);
  return half;
}

TEST(BytesOfJson, IntegersMustFitTheirType) {
  struct Case {
    DataType type;
    const char* fits;
    const char* too_small;
    const char* too_large;
  };
  for (const Case& c : {
           Case{DataType::kUint8, "[0, 255]", "-1", "256"},
           Case{DataType::kUint16, "[0, 65535]", "-1", "65536"},
           Case{DataType::kUint32, "[0, 4294967295]", "-1", "4294967296"},
           Case{DataType::kUint64, "[0, 18446744073709551615]", "-1", "18446744073709551616"},
           Case{DataType::kInt8, "[-128, 127]", "-129", "128"},
           Case{DataType::kInt16, "[-32768, 32767]", "-32769", "32768"},
           Case{DataType::kInt32, "[-2147483648, 2147483647]", "-2147483649", "2147483648"},
           Case{DataType::kInt64, "[-9223372036854775808, 9223372036854775807]",
                "-9223372036854775809", "9223372036854775808"},
       }) {
    EXPECT_EQ(Through(c.type, c.fits), c.fits);
    for (const char* wrong : {c.too_small, c.too_large, "1.0", "1.5", "true", "\"1\"", "null"}) {
      EXPECT_EQ(Through(c.type, wrong), "refused") << tensor::ProtocolName(c.type) << wrong;
    }
  }
}

TEST(BytesOfJson, BooleansAreWordsOrZeroAndOne) {
  EXPECT_EQ(Through(DataType::kBool, "[true, 0, 1, [false]]"), "[true, false, true, false]");
  for (const char* wrong : {"2", "-1", "1.0", "\"true\"", "null", "[{}]"}) {
    EXPECT_EQ(Through(DataType::kBool, wrong), "refused") << wrong;
  }
}

TEST(BytesOfJson, TextsAreTakenAsTheyAre) {
  const auto bytes = Bytes(DataType::kBytes, R"([["a\u0000b"], "", "é"])");
  ASSERT_TRUE(bytes.ok());
  const auto texts = SplitBytes(*bytes);
  ASSERT_TRUE(texts.has_value());
  EXPECT_THAT(*texts, testing::ElementsAre(std::string_view("a\0b", 3), "", "é"));
  EXPECT_EQ(Through(DataType::kBytes, "[1]"), "refused");
}

TEST(BytesOfJson, ArraysAreReadInOrderHoweverNested) {
  EXPECT_EQ(Through(DataType::kInt8, "[[[1],[]],[],[2,[3,[4]]],5]"), "[1, 2, 3, 4, 5]");
  EXPECT_EQ(Through(DataType::kInt8, "7"), "[7]");
  EXPECT_EQ(Through(DataType::kInt8, "[]"), "[]");
  EXPECT_EQ(Through(DataType::kInvalid, "1"), "refused");
}

TEST(BytesOfJson, TheErrorNamesTheFirstWrongValueAndTheType) {
  EXPECT_EQ(Bytes(DataType::kUint8, "[1,[2,300],\"x\"]").status().message(), "300 is no UINT8");
  EXPECT_EQ(Bytes(DataType::kFp32, "[1.5,{\"a\":[]}]").status().message(), "{\"a\":[]} is no FP32");
}

// Every half is the nearest of its neighbours, to both sides, and for ties the even one.
TEST(BytesOfJson, HalfPrecisionIsRoundedToNearest) {
  for (uint16_t half = 0; half < 0x7BFF; ++half) {
    const double low = HalfToFloat(half);
    const double high = HalfToFloat(half + 1);
    const double middle = (low + high) / 2;
    const auto text = [](double value) { return fmt::format("{:.17g}", value); };
    ASSERT_EQ(Half(text(low)), half);
    // Without a point, -0 is an integer, which has no sign.
    ASSERT_EQ(Half(text(-low)), half == 0 ? 0 : half | 0x8000);
    ASSERT_EQ(Half(text(middle)), half + (half & 1));
    ASSERT_EQ(Half(text(std::nextafter(middle, low))), half);
    ASSERT_EQ(Half(text(std::nextafter(middle, high))), half + 1);
  }
}

TEST(BytesOfJson, SmallFloatsAreRoundedToNearest) {
  EXPECT_EQ(Half("3.14159"), 0x4248);
  EXPECT_EQ(Half("2049"), 0x6800);
  EXPECT_EQ(Half("2051"), 0x6802);
  EXPECT_EQ(Half("1.00390625", DataType::kBf16), 0x3F80);
  EXPECT_EQ(Half("1.004", DataType::kBf16), 0x3F81);
  EXPECT_EQ(Half("-3.14159", DataType::kBf16), 0xC049);
  EXPECT_EQ(Half("1e-45", DataType::kBf16), 0);
  EXPECT_EQ(Half("9.2e-41", DataType::kBf16), 1);
}

TEST(BytesOfJson, NumbersThatWouldBecomeInfiniteAreRefused) {
  EXPECT_EQ(Through(DataType::kFp16, "[65504, 65519.9, -65504]"), "[65504.0, 65504.0, -65504.0]");
  EXPECT_EQ(Through(DataType::kFp16, "65520"), "refused");
  EXPECT_EQ(Through(DataType::kFp16, "-1e300"), "refused");
  EXPECT_EQ(Through(DataType::kFp32, "3.4028234663852886e38"), "[3.4028235e+38]");
  EXPECT_EQ(Through(DataType::kFp32, "3.5e38"), "refused");
  EXPECT_EQ(Through(DataType::kBf16, "3.4e38"), "refused");
  for (const DataType type : {DataType::kFp16, DataType::kBf16, DataType::kFp32, DataType::kFp64}) {
    EXPECT_EQ(Through(type, "[Infinity, -Infinity, NaN, -0.0]"),
              "[Infinity, -Infinity, NaN, -0.0]");
  }
}

TEST(BytesOfJson, SinglePrecisionIsThatOfTheProcessor) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    // The numbers are of all magnitudes around those of FP32.
    const double number =
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 330) - 230);
    const auto expected = static_cast<float>(number);
    const auto bytes = Bytes(DataType::kFp32, fmt::format("{:.17g}", number));
    ASSERT_EQ(bytes.ok(), std::isfinite(expected)) << number;
    if (!bytes.ok()) continue;
    float read = 0;
    std::memcpy(&read, bytes->data(), sizeof read);
    ASSERT_EQ(std::bit_cast<uint32_t>(read), std::bit_cast<uint32_t>(expected)) << number;
  }
}

TEST(BytesOfJson, ReadsWhatElementsTextShows) {
  std::mt19937 random(2);
  for (int type = 1; type < tensor::kDataTypeCount; ++type) {
    const auto data_type = static_cast<DataType>(type);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto bytes = GenerateElements(data_type, 1 + random() % 30, Filling::kRandom, seed);
      ASSERT_TRUE(bytes.ok());
      const auto text = ElementsText(data_type, *bytes, 30);
      const auto again = Bytes(data_type, *text);
      ASSERT_TRUE(again.ok()) << *text;
      EXPECT_EQ(*again, *bytes) << *text;
    }
  }
}

TEST(GenerateElements, TheSeedDecides) {
  const auto generate = [](uint64_t seed) {
    return *GenerateElements(DataType::kFp32, 100, Filling::kRandom, seed);
  };
  EXPECT_EQ(generate(1), generate(1));
  EXPECT_NE(generate(1), generate(2));
  EXPECT_EQ(*ElementsText(DataType::kBytes,
                          *GenerateElements(DataType::kBytes, 2, Filling::kZeros, 0), 9),
            "[\"\", \"\"]");
}

}  // namespace
}  // namespace nereid::cli
